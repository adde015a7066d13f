// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks what config/monitoring has for other people's programs. It is a module of its own, so that their libraries stay
// out of the operator's.
package monitoring

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// file reads a file of the repository.
func file(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// decode reads a YAML file of the repository.
func decode(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(file(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
