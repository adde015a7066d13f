package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// sourced is an object and where it was read, such as member1.yaml or standard input, document 2, item 1.
type sourced struct {
	source string
	object *unstructured.Unstructured
}

// readObjects reads the objects of a file: YAML or JSON, one or many documents, and what Lists have in them; - is in.
// What cannot be read is in the error, and does not keep the rest from being read.
func readObjects(path string, in io.Reader) ([]sourced, error) {
	if path == "-" {
		path = "standard input"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read objects: %w", err)
		}
		defer file.Close()
		in = file
	}
	documents, err := split(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var objects []sourced
	var errs []error
	for i, raw := range documents {
		at := path
		if len(documents) > 1 {
			at = fmt.Sprintf("%s, document %d", path, i+1)
		}
		content, err := decode(raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
			continue
		}
		found, err := unpack(at, content)
		objects, errs = append(objects, found...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || len(objects) > 0 {
		return objects, err
	}
	return nil, fmt.Errorf("%s has no object", path)
}

// split returns the documents, without those that have nothing but comments. Several JSON objects may follow each other
// without a separator, as several calls of kubectl get -o json print them.
func split(in io.Reader) ([][]byte, error) {
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if several := jsonObjects(raw); several != nil {
			documents = append(documents, several...)
			continue
		}
		if asJSON, err := yaml.YAMLToJSON(raw); err == nil && string(asJSON) == "null" {
			continue // comments only
		}
		documents = append(documents, raw)
	}
}

// jsonObjects returns nil when the document is not JSON alone; it may be YAML that starts with a brace.
func jsonObjects(raw []byte) [][]byte {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil
	}
	var objects [][]byte
	decoder := kjson.NewDecoderCaseSensitivePreserveInts(bytes.NewReader(raw))
	for {
		var one json.RawMessage
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			return nil
		}
		objects = append(objects, one)
	}
}

// decode is strict about keys that stand twice: two YAML objects without a separator between them would be taken for one.
func decode(raw []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, err
	}
	var content any
	// This decoder tells whole numbers from others, as clients do.
	if err := utiljson.Unmarshal(asJSON, &content); err != nil {
		return nil, err
	}
	object, ok := content.(map[string]any)
	if !ok {
		return nil, errors.New("it is not a Kubernetes object: not even a map")
	}
	return object, nil
}

// unpack returns the object, or those of a List. API servers leave apiVersion and kind out of the elements of typed lists.
func unpack(at string, content map[string]any) ([]sourced, error) {
	apiVersion, kind := word(content, "apiVersion"), word(content, "kind")
	if apiVersion == "" || kind == "" {
		return nil, fmt.Errorf("%s: it is not a Kubernetes object: apiVersion or kind is missing", at)
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	elements, isList := content["items"].([]any)
	element, isListKind := strings.CutSuffix(kind, "List")
	if !isListKind || (!isList && content["items"] != nil) {
		return []sourced{{source: at, object: &unstructured.Unstructured{Object: content}}}, nil
	}
	var objects []sourced
	var errs []error
	for i, e := range elements {
		here := fmt.Sprintf("%s, item %d", at, i+1)
		o, ok := e.(map[string]any)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: it is not a Kubernetes object: not even a map", here))
			continue
		}
		if element != "" && word(o, "kind") == "" {
			o["apiVersion"], o["kind"] = apiVersion, element
		}
		found, err := unpack(here, o)
		objects, errs = append(objects, found...), append(errs, err)
	}
	return objects, errors.Join(errs...)
}

func word(object map[string]any, key string) string {
	s, _ := object[key].(string)
	return s
}
