// failover.go: go run failover.go
package main

import ("encoding/json"; "fmt"; "net/http"; "os"; "strings")

type M = map[string]any

func ask(method, path, body string) (answer M) {
	request, _ := http.NewRequest(method, os.Getenv("KVIEW_HTTP_URL")+path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KVIEW_HTTP_TOKEN"))
	response, err := http.DefaultClient.Do(request)
	if err != nil { panic(err) }
	defer response.Body.Close()
	json.NewDecoder(response.Body).Decode(&answer)
	if response.StatusCode != 200 { panic(answer["error"]) }
	return answer
}

func main() {
	ask("POST", "/topics", `{"name": "go-orders"}`)
	first := ask("GET", "/topics/go-orders", "")["partitions"].([]any)[0].(M)["leader"]
	ask("POST", "/commands", fmt.Sprint("crash ", first))
	ask("POST", "/commands", fmt.Sprint("fence-now ", first))
	second := ask("POST", "/wait/leader", fmt.Sprintf(`{"topic": "go-orders", "other_than": %v}`, first))["leader"]
	fmt.Println(first, "->", second)
	ask("POST", "/heal", "")
}
