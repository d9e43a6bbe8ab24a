# curl.sh: `kview serve --empty --brokers 3 --http 0` prints http.url and http.token; `kview schema --http` describes all of it.
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $KVIEW_HTTP_TOKEN" "$@"; }
ask "$KVIEW_HTTP_URL/bootstrap"                                        # what clients connect to, and with which settings
ask "$KVIEW_HTTP_URL/topics" -d '{"name": "orders", "partitions": 3}'
ask "$KVIEW_HTTP_URL/topics/orders"                                    # leaders, replicas, in-sync replicas
ask "$KVIEW_HTTP_URL/commands" -d 'fail Produce NOT_LEADER_OR_FOLLOWER times=2'
ask "$KVIEW_HTTP_URL/requests?api=Produce"
ask "$KVIEW_HTTP_URL/commands" -d '{"kind": "crash", "node": 1}'       # the same as the line `crash 1`
ask "$KVIEW_HTTP_URL/commands" -d 'advance 10m'
ask "$KVIEW_HTTP_URL/heal" -d '{"within_s": 60}'                       # as new: between two tests
ask "$KVIEW_HTTP_URL/quit" -X POST
