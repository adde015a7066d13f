package randomspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Numbers is a case full of numbers as API servers keep them: whole ones of 64 bits, and others. They are below spec.numbers of the
// template, below numbers of a companion, and below spec.patched where the override is, which is on m1.
type Numbers struct {
	Case
	apiVersion, kind             string
	Template, Companion, Patched json.RawMessage
}

// NewNumbers draws the case of a seed, for a kind.
func NewNumbers(seed uint64, apiVersion, kind string) Numbers {
	r := random{rand.New(rand.NewPCG(seed, 4))}
	k := 0
	for kinds[k].apiVersion != apiVersion || kinds[k].kind != kind {
		k++
	}
	n := Numbers{Case: plain(k, v1alpha1.DivisionTypeDuplicated), apiVersion: apiVersion, kind: kind,
		Template: r.numbers(3), Companion: r.numbers(3), Patched: r.numbers(3)}
	n.Workload.Spec.ConflictPolicy = v1alpha1.ConflictPolicyFail
	n.Write()
	return n
}

// Write puts the numbers into the FleetWorkload.
func (n Numbers) Write() {
	n.Workload.Spec.Template.Raw = fmt.Appendf(nil,
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":"web"},"spec":{"selector":{},"template":{"spec":{"containers":[{"name":"c0"}]}},"numbers":%s}}`,
		n.apiVersion, n.kind, n.Template)
	n.Workload.Spec.Companions = []runtime.RawExtension{{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"numbers":%s}`, n.Companion)}}
	n.Workload.Spec.Overrides = []v1alpha1.Override{{
		Clusters: &v1alpha1.ClusterSelector{Names: []string{"m1"}},
		Patches: []v1alpha1.PatchOperation{
			{Op: v1alpha1.PatchOpAdd, Path: "/spec/patched", Value: &apiextensionsv1.JSON{Raw: n.Patched}}},
	}}
}

// numbers are JSON with a number wherever one can be.
func (r random) numbers(depth int) json.RawMessage {
	if depth == 0 || r.percent(30) {
		return r.number()
	}
	var out bytes.Buffer
	if r.percent(50) {
		out.WriteString("[0")
		for range 1 + r.IntN(3) {
			fmt.Fprintf(&out, ",%s", r.numbers(depth-1))
		}
		out.WriteString("]")
		return out.Bytes()
	}
	out.WriteString(`{"first":1700000000000000001`)
	for i := range 1 + r.IntN(3) {
		fmt.Fprintf(&out, `,"k%d":%s`, i, r.numbers(depth-1))
	}
	out.WriteString("}")
	return out.Bytes()
}

// number is one as an API server writes it.
func (r random) number() json.RawMessage {
	if r.percent(50) {
		return encode(pick(r, int64(r.Uint64()), 1<<53+1, -1<<53-1, 1700000000000000001, math.MaxInt64, math.MinInt64, 0, 1))
	}
	return encode(pick(r, r.NormFloat64(), 0.1, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, 1.5, 123456789.123))
}

// DifferentNumbers tells where a value differs from what was asked for, by the digits in which it is written.
func DifferentNumbers(want json.RawMessage, got any) string {
	return cmp.Diff(digits(want), digits(encode(got)))
}

func digits(raw []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(raw)) //nolint:forbidigo // it keeps the digits
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err) // everything here is JSON
	}
	return value
}
