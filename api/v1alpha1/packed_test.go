package v1alpha1_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// recordsOf is a status with so many clusters in each of the lists, whose names are as long as can be.
func recordsOf(shares, migration, last int) *v1alpha1.FleetWorkloadStatus {
	name := func(i int) string { return fmt.Sprintf("%s-%05d", strings.Repeat("c", 57), i) }
	clusters := func(n int) (all []v1alpha1.MigrationClusterStatus) {
		for i := range n {
			all = append(all, v1alpha1.MigrationClusterStatus{
				Name: name(i), Phase: v1alpha1.MigrationPhaseVerifying, Before: &v1alpha1.MigrationEvidence{UID: name(n - i)}, After: &v1alpha1.MigrationEvidence{},
			})
		}
		return all
	}
	s := &v1alpha1.FleetWorkloadStatus{
		Backend:   "one",
		Placement: &v1alpha1.PlacementRecord{Group: "g"},
		Migration: &v1alpha1.MigrationStatus{
			To: "two", Clusters: clusters(migration),
			History: []v1alpha1.MigrationRecord{{From: "two", To: "one", Clusters: clusters(last)}, {From: "one", To: "two"}},
		},
	}
	for i := range shares {
		s.Placement.Clusters = append(s.Placement.Clusters, v1alpha1.ClusterShare{Name: name(i), Replicas: new(int32)})
	}
	return s
}

// TestPackedRecordsAreWhole: whoever reads a status has all records in their order, packed or not, whatever he had read before.
func TestPackedRecordsAreWhole(t *testing.T) {
	for name, test := range map[string]struct {
		status *v1alpha1.FleetWorkloadStatus
		packed bool
	}{
		"nothing":                      {&v1alpha1.FleetWorkloadStatus{}, false},
		"few":                          {recordsOf(9, 9, 9), false},
		"many":                         {recordsOf(1000, 1000, 1000), true},
		"one that is left":             {recordsOf(1001, 1000, 999), true},
		"no migration":                 {recordsOf(5000, 0, 0), true},
		"one that begins":              {recordsOf(0, 1000, 0), true},
		"only the history":             {recordsOf(0, 0, 1000), true},
		"neither placement nor record": {&v1alpha1.FleetWorkloadStatus{Migration: recordsOf(0, 1000, 0).Migration}, true},
	} {
		given := test.status.DeepCopy()
		stored, err := test.status.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(given, test.status) {
			t.Errorf("%s: what is given is changed", name)
		}
		if packed := stored.Packed != ""; packed != test.packed {
			t.Errorf("%s: packed %v", name, packed)
		}
		raw, err := json.Marshal(stored)
		if err != nil || test.packed && strings.Contains(string(raw), "cccc") {
			t.Errorf("%s: a list stands beside what is packed, %v", name, err)
		}
		read := &v1alpha1.FleetWorkloadStatus{Packed: "x"} // of the object that was read before
		if given.Placement != nil {
			read.Placement, read.Migration = recordsOf(3, 3, 3).Placement, recordsOf(3, 3, 3).Migration
		}
		if err := json.Unmarshal(raw, read); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(read.Bare(), stored) && test.packed {
			t.Errorf("%s: the API server is thought to have something else: %s", name, cmp.Diff(read.Bare(), stored))
		}
		if again, err := read.Pack(); test.packed && (err != nil || again.Packed != stored.Packed) {
			t.Errorf("%s: packed another way, %v", name, err)
		}
		if read.Packed = ""; test.packed && !cmp.Equal(read, given) {
			t.Errorf("%s: %s", name, cmp.Diff(given, read))
		}
	}
}

// TestWhatCannotBeUnpackedDoesNotDecode: a hand-over whose clusters cannot be read must not look like one without any.
func TestWhatCannotBeUnpackedDoesNotDecode(t *testing.T) {
	pack := func(rows string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(rows))
		_ = w.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	row := func(rows string) string { return pack("{}\n" + rows) }
	whole := row(`{"migration":{"name":"=m1"}}`)
	for name, test := range map[string]struct{ status, want string }{
		"whole":            {`{"migration":{"to":"two"},"packed":"` + whole + `"}`, ""},
		"no base64":        {`{"migration":{"to":"two"},"packed":"!"}`, "unpack status.packed"},
		"no gzip":          {`{"migration":{"to":"two"},"packed":"aGVsbG8gd29ybGQhIQ=="}`, "unpack status.packed"},
		"cut off":          {`{"migration":{"to":"two"},"packed":"` + whole[:len(whole)-8] + `"}`, "unpack status.packed"},
		"no rows":          {`{"migration":{"to":"two"},"packed":"` + row(`{"migration":1}`) + `"}`, "unpack status.packed"},
		"no texts":         {`{"migration":{"to":"two"},"packed":"` + pack(`[1]`) + `"}`, "unpack status.packed"},
		"an unknown text":  {`{"migration":{"to":"two"},"packed":"` + row(`{"migration":{"name":"-1"}}`) + `"}`, "there is no text"},
		"no new text":      {`{"migration":{"to":"two"},"packed":"` + row(`{"migration":{"name":"+"}}`) + `"}`, "there is no text"},
		"no migration":     {`{"packed":"` + whole + `"}`, "what the status does not have"},
		"no history":       {`{"migration":{"to":"two"},"packed":"` + row(`{"last":{"name":"=m1"}}`) + `"}`, "what the status does not have"},
		"no placement":     {`{"packed":"` + row(`{"share":{"name":"=m1"}}`) + `"}`, "what the status does not have"},
		"the status is no": {`{"packed":1}`, "cannot unmarshal"},
	} {
		status := &v1alpha1.FleetWorkloadStatus{}
		err := json.Unmarshal([]byte(test.status), status)
		if failed := err != nil; failed != (test.want != "") || failed && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if test.want == "" && (len(status.Migration.Clusters) != 1 || status.Migration.Clusters[0].Name != "m1") {
			t.Errorf("%s: %+v", name, status.Migration)
		}
	}
}

// TestABombIsRefused: a few bytes that unpack to very many cost neither the time nor the memory of those, and do not decode.
func TestABombIsRefused(t *testing.T) {
	pack := func(parts ...string) string {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		for _, part := range parts {
			_, _ = w.Write([]byte(part))
		}
		_ = w.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	long := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct{ packed, want string }{
		"zeros":           {pack(strings.Repeat("\x00", 512<<20>>3)), "read its texts"},
		"blanks":          {pack("{}", strings.Repeat(" ", 64<<20)), "unpacks to more than"},
		"empty rows":      {pack("{}", strings.Repeat("{}", 2<<20)), "more than 20000 rows"},
		"one text, often": {pack(`{".migration.message":["`+long+`"]}`, `{"migration":{"message":"+"}}`, strings.Repeat(`{"migration":{"message":"-1"}}`, 900)), "it says more than"},
		"a long text":     {pack(`{".migration.message":["` + strings.Repeat(long, 32) + `"]}`), "unpacks to more than"},
		"many texts":      {pack(`{".x":["y"`, strings.Repeat(`,"y"`, 16<<20), `]}`), "unpacks to more than"},
	} {
		if len(test.packed) > 1<<20 {
			t.Fatalf("%s: the schema would refuse it", name)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := json.Unmarshal([]byte(`{"migration":{"to":"two","history":[{"from":"one"}]},"packed":"`+test.packed+`"}`), &v1alpha1.FleetWorkloadStatus{})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 64 {
			t.Errorf("%s: it cost %d MiB", name, allocated)
		}
	}
}

// TestWhatCouldNotBeReadIsNotPacked: nothing is decided by a record that is lost.
func TestWhatCouldNotBeReadIsNotPacked(t *testing.T) {
	if _, err := recordsOf(20_001, 0, 0).Pack(); err == nil {
		t.Error("more rows are packed than are read")
	}
	long := recordsOf(0, 9000, 0)
	for i := range long.Migration.Clusters {
		long.Migration.Clusters[i].Message = strings.Repeat("m", 1000)
	}
	if _, err := long.Pack(); err == nil {
		t.Error("more is packed than is read")
	}
}
