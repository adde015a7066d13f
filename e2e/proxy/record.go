package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// recorder keeps an answer, so that it can be handed over, or kept back, once the write is done.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	// Informational answers come before the one that counts.
	if status >= http.StatusOK {
		r.status = status
	}
}

func (r *recorder) Write(data []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(data)
}

func (r *recorder) copyTo(w http.ResponseWriter) {
	for key, values := range r.header {
		w.Header()[key] = values
	}
	w.WriteHeader(r.status)
	// The client may be gone; what was written on the server counts.
	_, _ = w.Write(r.body.Bytes())
}

// hide takes hidden groups out of the list of groups.
func (p *Proxy) hide(r *http.Response) error {
	p.mu.Lock()
	hiding := len(p.hidden) > 0
	p.mu.Unlock()
	if !hiding || r.Request.URL.Path != "/apis" || r.StatusCode != http.StatusOK {
		return nil
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	var list map[string]any
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	groups, _ := list["groups"].([]any)
	var kept []any
	for _, g := range groups {
		if m, ok := g.(map[string]any); ok {
			if name, _ := m["name"].(string); p.isHidden(name) {
				continue
			}
		}
		kept = append(kept, g)
	}
	list["groups"] = kept
	if raw, err = json.Marshal(list); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.ContentLength = int64(len(raw))
	r.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	r.Header.Del("Etag")
	return nil
}
