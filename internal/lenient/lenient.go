// Package lenient lets the operator go on when the API server has a FleetWorkload that does not decode, as after somebody has loosened
// the CRD: a client decodes a list or a watch as a whole, so that one such object would hide all others. What it reads is mended on its
// way: the object that does not decode comes without its spec, and with an annotation that says why. Whoever sees that annotation must
// not touch what the object describes.
package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	k8sjson "sigs.k8s.io/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// annotationUndecodable says why an object does not decode. It is never written to the API server.
const annotationUndecodable = "fleetworkload.io/undecodable"

// Problem says why the FleetWorkload, as it was read through Transport, does not decode; it is empty when it does.
func Problem(fw *v1alpha1.FleetWorkload) string { return fw.Annotations[annotationUndecodable] }

// Transport mends the answers of an API server; it is a transport.WrapperFunc of client-go.
func Transport(base http.RoundTripper) http.RoundTripper { return mender{base} }

type mender struct{ base http.RoundTripper }

// resource is in the path of every request about FleetWorkloads.
var resource = "/apis/" + v1alpha1.GroupVersion.String() + "/"

// RoundTrip implements http.RoundTripper.
func (m mender) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.base.RoundTrip(req)
	if err != nil || !strings.Contains(req.URL.Path, resource) || resp.StatusCode >= http.StatusMultipleChoices ||
		!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, err
	}
	if watches := req.URL.Query().Get("watch"); watches == "true" || watches == "1" {
		resp.Body = &stream{body: resp.Body, frames: json.NewDecoder(resp.Body)} //nolint:forbidigo // what it decodes stays raw
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the answer about FleetWorkloads: %w", err)
	}
	body = mend(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// stream is the body of a watch, mended one event after the other.
type stream struct {
	body   io.ReadCloser
	frames *json.Decoder
	left   []byte
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := s.frames.Decode(&event); err != nil {
			return 0, err //nolint:wrapcheck // io.EOF is the end of a watch, and client-go tells errors of connections by their types
		}
		event.Object = mendOne(event.Object)
		frame, err := json.Marshal(event)
		if err != nil {
			return 0, fmt.Errorf("encode a watch event: %w", err)
		}
		s.left = append(frame, '\n')
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	return s.body.Close() //nolint:wrapcheck // as above
}

// mend returns an answer in which every FleetWorkload decodes. Any other answer stays as it is.
func mend(body []byte) []byte {
	var kind struct {
		Kind string `json:"kind"`
	}
	if decode(body, &kind) != nil {
		return body
	}
	if kind.Kind != "FleetWorkloadList" {
		return mendOne(body)
	}
	if decode(body, &v1alpha1.FleetWorkloadList{}) == nil {
		return body
	}
	var list map[string]json.RawMessage
	var items []json.RawMessage
	if decode(body, &list) != nil || decode(list["items"], &items) != nil {
		return body
	}
	for i := range items {
		items[i] = mendOne(items[i])
	}
	return replace(body, list, "items", items)
}

// mendOne returns one object that decodes, or what is no FleetWorkload as it is. The kind may be left out, as in a list.
func mendOne(raw []byte) []byte {
	cause := decode(raw, &v1alpha1.FleetWorkload{})
	if cause == nil {
		return raw
	}
	var object, metadata map[string]json.RawMessage
	if decode(raw, &object) != nil || decode(object["metadata"], &metadata) != nil {
		return raw
	}
	annotations := map[string]string{}
	if given, has := metadata["annotations"]; has && decode(given, &annotations) != nil {
		return raw
	}
	annotations[annotationUndecodable] = cause.Error()
	delete(object, "spec")
	if decode(object["status"], &v1alpha1.FleetWorkloadStatus{}) != nil {
		delete(object, "status")
	}
	object["metadata"] = replace(object["metadata"], metadata, "annotations", annotations)
	out, err := json.Marshal(object)
	if err != nil || decode(out, &v1alpha1.FleetWorkload{}) != nil {
		return raw
	}
	return out
}

// replace returns an object with one field set, or the object as it was when that cannot be.
func replace(before []byte, object map[string]json.RawMessage, field string, value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		return before
	}
	object[field] = raw
	out, err := json.Marshal(object)
	if err != nil {
		return before
	}
	return out
}

// decode decodes as client-go does (apimachinery's serializer/json).
func decode(raw []byte, into any) error {
	if err := k8sjson.UnmarshalCaseSensitivePreserveInts(raw, into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
