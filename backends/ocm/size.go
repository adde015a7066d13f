package ocm

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sizeMemory is for how long a refusal is remembered: the hub's limit may be raised.
const sizeMemory = 10 * time.Minute

// sizes remember the smallest manifest that the hub has refused for its size, so that it is not sent once more for every cluster, at
// every pass.
type sizes struct {
	mu      sync.Mutex
	refused int
	err     error
	at      time.Time
}

// send writes a ManifestWork, unless one that is no larger was refused lately: then it returns that error.
func (s *sizes) send(work *unstructured.Unstructured, write func() error) error {
	if err := s.known(work); err != nil {
		return err
	}
	err := write()
	if err != nil && isTooLarge(err.Error()) {
		s.learn(manifestSize(work), err)
	}
	return err
}

func (s *sizes) known(work *unstructured.Unstructured) error {
	s.mu.Lock()
	refused, err, at := s.refused, s.err, s.at
	s.mu.Unlock()
	if err == nil || time.Since(at) > sizeMemory || manifestSize(work) < refused {
		return nil
	}
	return err
}

func (s *sizes) learn(size int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || size <= s.refused || time.Since(s.at) > sizeMemory {
		s.refused, s.err, s.at = size, err, time.Now()
	}
}

func manifestSize(work *unstructured.Unstructured) int {
	raw, err := json.Marshal(firstManifest(work))
	if err != nil {
		return 0
	}
	return len(raw)
}

// isTooLarge tells by its text that OCM's webhook, the API server or etcd refuses a manifest for its size.
func isTooLarge(text string) bool {
	return strings.Contains(text, "bytes which exceeds the") || strings.Contains(text, "request is too large")
}
