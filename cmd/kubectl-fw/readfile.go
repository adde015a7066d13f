package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// readFile reads the FleetWorkloads of a file with one or more YAML or JSON documents; - is in. Objects of other kinds
// are skipped and named. Fields that a FleetWorkload does not have are errors.
func readFile(path string, in io.Reader) (fws []*v1alpha1.FleetWorkload, skipped []string, err error) {
	if path == "-" {
		path = "standard input"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read FleetWorkloads: %w", err)
		}
		defer file.Close()
		in = file
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for i := 1; ; i++ {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s, document %d: %w", path, i, err)
		}
		var head metav1.PartialObjectMetadata
		asJSON, err := yaml.YAMLToJSON(raw)
		if err == nil {
			err = utiljson.Unmarshal(asJSON, &head)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s, document %d: %w", path, i, err)
		}
		switch {
		case head.Kind == "" && head.APIVersion == "" && head.Name == "":
			continue // comments only
		case head.Kind != "FleetWorkload" || head.APIVersion != v1alpha1.GroupVersion.String():
			skipped = append(skipped, fmt.Sprintf("%s, document %d: %s %s %q is not a FleetWorkload of %s",
				path, i, head.APIVersion, head.Kind, head.Name, v1alpha1.GroupVersion))
			continue
		}
		fw := &v1alpha1.FleetWorkload{}
		if err := decodeStrict(raw, fw); err != nil {
			return nil, nil, fmt.Errorf("%s, document %d: %w", path, i, err)
		}
		fws = append(fws, fw)
	}
	if len(fws) == 0 {
		return nil, skipped, fmt.Errorf("%s has no FleetWorkload of %s", path, v1alpha1.GroupVersion)
	}
	return fws, skipped, nil
}

// decodeStrict reads YAML as API servers read JSON with strict field validation: the error names every field that the
// type does not have, with its path.
func decodeStrict(raw []byte, into any) error {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(asJSON, into)
	return errors.Join(append(strict, err)...)
}
