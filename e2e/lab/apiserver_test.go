//go:build api

package lab

import (
	"io"
	"path/filepath"
	"testing"
)

func TestStartAPIServer(t *testing.T) {
	api, err := StartAPIServer(t.Context(), filepath.Join(t.TempDir(), "api"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(api.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ensureMaps(t.Context(), namespaceObject("created")); err != nil {
		t.Error(err)
	}
	if err := api.Stop(); err != nil {
		t.Error(err)
	}
	if exists(api.fleet.dir) {
		t.Error("Stop left the folder")
	}
}
