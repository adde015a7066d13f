package lenient

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

const (
	good  = `{"kind":"FleetWorkload","metadata":{"name":"good","namespace":"shop"},"spec":{"backend":"ocm","replicas":9007199254740993}}`
	fine  = `{"kind":"FleetWorkload","metadata":{"name":"fine","namespace":"shop"},"spec":{"backend":"ocm","replicas":3}}`
	wrong = `{"kind":"FleetWorkload","metadata":{"name":"wrong","namespace":"shop","uid":"u","annotations":{"a":"b"},"resourceVersion":"7"},` +
		`"spec":{"replicas":"three"},"status":{"backend":"ocm"}}`
)

// answers is a transport with one answer.
type answers struct {
	kind, body string
	code       int
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	body := io.NopCloser(iotest.OneByteReader(strings.NewReader(a.body)))
	return &http.Response{StatusCode: a.code, Header: http.Header{"Content-Type": {a.kind}}, Body: body}, nil
}

func get(t *testing.T, path string, a answers) string {
	t.Helper()
	target, err := url.Parse("https://hub" + path)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Transport(a).RoundTrip(&http.Request{URL: target})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

const all = "/apis/apps.fleetworkload.io/v1alpha1/fleetworkloads"

// mended is what comes of the wrong one: it says why, and keeps all but its spec.
func mended(t *testing.T, raw []byte) {
	t.Helper()
	fw := &v1alpha1.FleetWorkload{}
	if err := decode(raw, fw); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if !strings.Contains(Problem(fw), "spec.replicas") || fw.Annotations["a"] != "b" || fw.UID != "u" || fw.ResourceVersion != "7" ||
		fw.Status.Backend != "ocm" || fw.Spec.Replicas != nil {
		t.Errorf("%s: %+v", Problem(fw), fw)
	}
}

func TestAList(t *testing.T) {
	list := func(items ...string) string {
		return `{"kind":"FleetWorkloadList","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	}
	if body := list(fine, fine); get(t, all, answers{"application/json", body, 200}) != body {
		t.Error("a list that decodes was changed")
	}
	var out struct {
		Metadata json.RawMessage
		Items    []json.RawMessage
	}
	if err := json.Unmarshal([]byte(get(t, all, answers{"application/json", list(fine, wrong), 200})), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Items) != 2 || string(out.Items[0]) != fine || string(out.Metadata) != `{"resourceVersion":"9"}` {
		t.Fatalf("%s", out.Items)
	}
	mended(t, out.Items[1])
}

func TestAWatch(t *testing.T) {
	events := `{"type":"ADDED","object":` + fine + `}` + "\n" + `{"type":"MODIFIED","object":` + wrong + `}` + "\n" +
		`{"type":"BOOKMARK","object":{"kind":"FleetWorkload","metadata":{"resourceVersion":"8"}}}` + "\n" +
		`{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n"
	lines := strings.Split(get(t, all+"?watch=true", answers{"application/json;stream=watch", events, 200}), "\n")
	before := strings.Split(events, "\n")
	if len(lines) != len(before) || lines[0] != before[0] || lines[2] != before[2] || lines[3] != before[3] {
		t.Fatalf("%q", lines)
	}
	var event struct{ Object json.RawMessage }
	if err := json.Unmarshal([]byte(lines[1]), &event); err != nil {
		t.Fatal(err)
	}
	mended(t, event.Object)
}

func TestOneObject(t *testing.T) {
	mended(t, []byte(get(t, all+"/wrong", answers{"application/json", wrong, 200})))
	// A number that is too large for its field is no reason to hide the other fields' values from whoever reads the object itself.
	if fw := (&v1alpha1.FleetWorkload{}); decode(mend([]byte(good)), fw) != nil || Problem(fw) == "" {
		t.Errorf("%+v", fw)
	}
	status := strings.Replace(wrong, `"backend":"ocm"`, `"backend":3`, 1)
	fw := &v1alpha1.FleetWorkload{}
	if err := decode(mend([]byte(status)), fw); err != nil || Problem(fw) == "" || fw.Status.Backend != "" {
		t.Errorf("a status that does not decode either: %v, %+v", err, fw)
	}
}

func TestOthersStayAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		answers
	}{
		"another resource": {"/apis/apps/v1/deployments", answers{"application/json", wrong, 200}},
		"a refusal":        {all, answers{"application/json", `{"kind":"Status","code":403}`, 403}},
		"a redirect":       {all, answers{"application/json", wrong, http.StatusMultipleChoices}},
		"protobuf":         {all, answers{"application/vnd.kubernetes.protobuf", wrong, 200}},
		"a table":          {all, answers{"application/json", `{"kind":"Table","rows":[]}`, 200}},
		"no JSON":          {all, answers{"application/json", `{`, 200}},
		"metadata alone":   {all, answers{"application/json", `{"kind":"PartialObjectMetadata","metadata":{"name":"x"}}`, 200}},
	} {
		if got := get(t, c.path, c.answers); got != c.body {
			t.Errorf("%s became %s", name, got)
		}
	}
}

func FuzzMend(f *testing.F) {
	for _, seed := range []string{good, fine, wrong, `{"kind":"FleetWorkloadList","items":[` + wrong + `]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := mend(bytes.Clone(raw))
		if decode(raw, &v1alpha1.FleetWorkload{}) == nil && decode(raw, &v1alpha1.FleetWorkloadList{}) == nil && !bytes.Equal(out, raw) {
			t.Errorf("%s became %s", raw, out)
		}
	})
}
