// SPDX-License-Identifier: Apache-2.0

// Program apilint holds the API types to the Kubernetes API conventions: comments, markers, bounds, list types, and
// the shapes that age badly. Its rules are a subset of kube-api-linter's and carry the same names; that linter has no
// release and its pseudo-versions are not served by every module proxy. What a rule forbids and the API does on
// purpose stands in the file of exemptions, each with its reason; an exemption that exempts nothing is an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"
)

// exemption lets one type or field off one rule.
type exemption struct {
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
}

func main() {
	dir := flag.String("dir", "api/v1alpha1", "folder of the API package")
	exemptions := flag.String("exemptions", "hack/apilint/exemptions.yaml", "file of exemptions")
	flag.Parse()
	if err := run(os.Stdout, *dir, *exemptions); err != nil {
		fmt.Fprintln(os.Stderr, "apilint:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir, exemptionsPath string) error {
	p, err := load(dir)
	if err != nil {
		return err
	}
	exempt, err := readExemptions(exemptionsPath)
	if err != nil {
		return err
	}
	failed := 0
	used := map[exemption]bool{}
	for _, pr := range lint(p) {
		if e, ok := exempted(pr, exempt); ok {
			used[e] = true
			continue
		}
		failed++
		fmt.Fprintf(out, "%s: %s: %s %s\n", p.fset.Position(pr.pos), pr.rule, pr.subject, pr.message)
	}
	for _, e := range exempt {
		if !used[e] {
			failed++
			fmt.Fprintf(out, "%s: %s of %s exempts nothing, remove it\n", exemptionsPath, e.Rule, e.Subject)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d problems", failed)
	}
	return nil
}

func exempted(pr problem, exempt []exemption) (exemption, bool) {
	for _, e := range exempt {
		if e.Rule == pr.rule && e.Subject == pr.subject {
			return e, true
		}
	}
	return exemption{}, false
}

func readExemptions(path string) ([]exemption, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read exemptions: %w", err)
	}
	var file struct {
		Exemptions []exemption `json:"exemptions"`
	}
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	for _, e := range file.Exemptions {
		if e.Reason == "" {
			return nil, errors.New(path + ": " + e.Rule + " of " + e.Subject + " has no reason")
		}
	}
	return file.Exemptions, nil
}
