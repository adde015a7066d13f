package backends

import (
	"net/http"
	"time"
)

// RequestTimeout bounds one request. An API server gives up after a minute by itself (kube-apiserver --request-timeout),
// and waits 10 s for a webhook by default; what takes longer than this is lost on the way, and the next pass sends it again.
const RequestTimeout = 30 * time.Second

// Bounded returns a client like c that gives a request up after RequestTimeout. Clients of Kubernetes have no bound of
// their own, and one request without an answer would keep its workload's pass waiting for as long. It is not for watches.
func Bounded(c *http.Client) *http.Client {
	bounded := *c
	bounded.Timeout = RequestTimeout
	return &bounded
}
