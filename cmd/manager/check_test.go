package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	ready := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer ready.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for name, c := range map[string]struct {
		args      []string
		says, err string
	}{
		"ready":            {[]string{"--ready-url", ready.URL}, "The operator is ready.\n", ""},
		"not ready":        {[]string{"--ready-url", other.URL, "--timeout", "100ms"}, "", "404 Not Found"},
		"nothing to check": {nil, "", "--ready-url or --webhook"},
		"no API server":    {[]string{"--webhook", "--kubeconfig", "testdata/none", "--timeout", "100ms"}, "", "connect to the management cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := checkCommand()
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			cmd.SetOut(&out)
			cmd.SetArgs(c.args)
			err := cmd.ExecuteContext(t.Context())
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want one with %q", err, c.err)
			}
			if out.String() != c.says {
				t.Errorf("says %q, not %q", out.String(), c.says)
			}
		})
	}
}
