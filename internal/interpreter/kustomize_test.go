package interpreter

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const kustomizePath = "../../config/kustomize/pods.yaml"

// manifests are where a FleetWorkload has some: one, and a list.
var manifests = []string{"spec/template", "spec/companions"}

// podReferences are the fields of a pod that refer to other objects, as far as kustomize knows them for Kubernetes' own kinds.
var podReferences = []struct {
	kind   string
	fields []string
}{
	{kindConfigMap, []string{
		"volumes/configMap/name", "volumes/projected/sources/configMap/name",
		"containers/env/valueFrom/configMapKeyRef/name", "initContainers/env/valueFrom/configMapKeyRef/name",
		"containers/envFrom/configMapRef/name", "initContainers/envFrom/configMapRef/name",
	}},
	{kindSecret, []string{
		"volumes/secret/secretName", "volumes/projected/sources/secret/name", "imagePullSecrets/name",
		"containers/env/valueFrom/secretKeyRef/name", "initContainers/env/valueFrom/secretKeyRef/name",
		"containers/envFrom/secretRef/name", "initContainers/envFrom/secretRef/name",
	}},
	{kindServiceAccount, []string{"serviceAccountName"}},
	{kindClaim, []string{"volumes/persistentVolumeClaim/claimName"}},
}

// TestKustomize holds what kustomize is told about pods against the kinds that have some.
func TestKustomize(t *testing.T) {
	want := kustomize(registry(t))
	if *update {
		if err := os.WriteFile(kustomizePath, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(kustomizePath)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s does not name the pods of all kinds; run: go test ./internal/interpreter -run TestKustomize -update", kustomizePath)
	}
}

func kustomize(r *Registry) string {
	templates := podTemplates(r)
	var b strings.Builder
	b.WriteString("# Where the kinds that FleetWorkloads carry have their pods.\n" +
		"# Written by: go test ./internal/interpreter -run TestKustomize -update\n")
	b.WriteString("\n# Images of containers need no word: kustomize looks for containers and initContainers wherever they are.\nimages:\n")
	var specs []string
	for _, manifest := range manifests {
		specs = append(specs, manifest+"/spec") // of a SidecarSet, whose spec has containers
		for _, template := range templates {
			specs = append(specs, manifest+"/"+strings.Join(template, "/")+"/spec")
		}
	}
	for _, spec := range specs[1:] { // kustomize looks at the first in every kind, and does not stand being told twice
		writeFieldSpec(&b, "", spec+"/volumes[]/image/reference", false)
	}
	for _, field := range []struct{ name, metadata string }{
		{"templateLabels", "labels"}, {"commonLabels", "labels"}, {"commonAnnotations", "annotations"},
	} {
		b.WriteString(field.name + ":\n")
		for _, manifest := range manifests {
			for _, template := range templates {
				writeFieldSpec(&b, "", podMetadata(manifest, template, templates)+"/"+field.metadata, true)
			}
		}
	}
	b.WriteString("nameReference:\n")
	for _, reference := range podReferences {
		fmt.Fprintf(&b, "- kind: %s\n  version: v1\n  fieldSpecs:\n", reference.kind)
		for _, spec := range specs {
			for _, field := range reference.fields {
				writeFieldSpec(&b, "  ", spec+"/"+field, false)
			}
		}
	}
	return b.String()
}

// podTemplates are the paths to pod templates of all kinds, sorted, each once.
func podTemplates(r *Registry) [][]string {
	var paths [][]string
	for _, k := range r.Kinds() {
		for _, text := range k.PodTemplates {
			paths = append(paths, split(text))
		}
	}
	slices.SortFunc(paths, slices.Compare)
	return slices.CompactFunc(paths, slices.Equal)
}

// podMetadata is the path to a pod template's metadata in a manifest. kustomize makes the metadata if there are none, but for a path that is no
// pod template in other kinds, which have theirs further down.
func podMetadata(manifest string, template []string, all [][]string) string {
	path := manifest
	if manifest == manifests[1] {
		path += "[]"
	}
	for _, key := range template {
		path += "/" + key + "[]"
	}
	path += "/metadata"
	if slices.ContainsFunc(all, func(other []string) bool {
		return len(other) > len(template) && slices.Equal(other[:len(template)], template)
	}) {
		path += "[]"
	}
	return path
}

func writeFieldSpec(b *strings.Builder, indent, path string, create bool) {
	made := ""
	if create {
		made = "create: true, "
	}
	fmt.Fprintf(b, "%s- {path: %q, %sgroup: apps.fleetworkload.io, kind: FleetWorkload}\n", indent, path, made)
}
