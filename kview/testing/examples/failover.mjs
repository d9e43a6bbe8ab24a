// failover.mjs: node failover.mjs
const ask = async (method, path, body) => {
  const response = await fetch(process.env.KVIEW_HTTP_URL + path, {
    method,
    body: typeof body === "object" ? JSON.stringify(body) : body,
    headers: { Authorization: `Bearer ${process.env.KVIEW_HTTP_TOKEN}` },
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
};

await ask("POST", "/topics", { name: "js-orders" });
const first = (await ask("GET", "/topics/js-orders")).partitions[0].leader;
await ask("POST", "/commands", `crash ${first}`);
await ask("POST", "/commands", `fence-now ${first}`);
const second = (await ask("POST", "/wait/leader", { topic: "js-orders", other_than: first })).leader;
console.log(`${first} -> ${second}`);
await ask("POST", "/heal");
