package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// What a FleetWorkload may cost, so that no one's keeps the others waiting (law 11): a decision stays below a second and 64 MiB. The API's
// schema bounds numbers of entries, and an API server whole objects; these are about what comes of the two together. In memory a manifest
// takes five to ten times its JSON.
const (
	// maxTemplate bounds spec.template, and spec.companions together, in bytes of JSON. etcd takes 1.5 MiB for all of an object.
	maxTemplate = 1 << 20
	// maxOverriding bounds the work of trying each override on the template, in bytes of JSON copied; see override.Set.Cost.
	maxOverriding = 16 << 20
	// maxVariants bounds the manifests that overrides make, one for each set of overrides that meet on a cluster, in the same unit.
	maxVariants = 5 << 20
	// maxCarried bounds the companions of all clusters, and the dependencies, in bytes of JSON: each of them is told to a backend, too.
	maxCarried = 64 << 20
	// maxCompanionObjects bounds how many objects companions and dependencies are on all clusters: a backend has one for each.
	maxCompanionObjects = 16_000
	// maxObjects bounds the JSON objects in spec.template, and in spec.companions, and maxMade those in all manifests that overrides make. A
	// small one takes forty times its JSON in memory, some 350 bytes.
	maxObjects, maxMade = 50_000, 110_000
	// maxManifests bounds all manifests that differ, by replicas or otherwise, in bytes of JSON: a backend is told of each.
	maxManifests = 32 << 20
)

func tooMuch(code backends.Code, field, what string, is, limit int64, remedy string) error {
	return &backends.Error{
		Code: code, Field: field, Value: amount(is), Message: fmt.Sprintf("%s, and the limit is %s", what, amount(limit)), Remedy: remedy,
	}
}

// amount rounds up, so that what is above a limit is so in the message, too.
func amount(bytes int64) string { return fmt.Sprintf("%d KiB", (bytes+1<<10-1)>>10) }

// checkSizes refuses what is too large to be read.
func checkSizes(fw *v1alpha1.FleetWorkload) error {
	if n := int64(len(fw.Spec.Template.Raw)); n > maxTemplate {
		return tooMuch(backends.CodeInvalidTemplate, "spec.template", "it is too large", n, maxTemplate,
			"put what is long into a ConfigMap or an image")
	}
	if total := carriedSize(fw); total > maxTemplate {
		return tooMuch(backends.CodeInvalidTemplate, "spec.companions", "they are too large together", total, maxTemplate,
			"put what is long into an image, or create some of them on the clusters yourself")
	}
	if n := objectsIn(fw.Spec.Template.Raw); n > maxObjects {
		return tooMany("spec.template", n, maxObjects, "put what is long into a ConfigMap or an image")
	}
	n := 0
	for _, c := range fw.Spec.Companions {
		n += objectsIn(c.Raw)
	}
	if n > maxObjects {
		return tooMany("spec.companions", n, maxObjects, "put what is long into an image, or create some of them on the clusters yourself")
	}
	return checkSelectors(fw)
}

func tooMany(field string, n, limit int, remedy string) error {
	return &backends.Error{
		Code: backends.CodeInvalidTemplate, Field: field, Value: fmt.Sprintf("%d objects", n),
		Message: fmt.Sprintf("there are too many {...} in it, and the limit is %d", limit), Remedy: remedy,
	}
}

// objectsIn counts the objects in JSON: braces that are in no string.
func objectsIn(raw []byte) (n int) {
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++ // there are none outside strings
		case '{':
			if !quoted {
				n++
			}
		}
	}
	return n
}

func carriedSize(fw *v1alpha1.FleetWorkload) (total int64) {
	for _, c := range fw.Spec.Companions {
		total += int64(len(c.Raw))
	}
	return total
}

// checkCarried refuses companions that are too large for so many clusters.
func (p *Plan) checkCarried(clusters int) error {
	if total := carriedSize(p.fw) * int64(clusters); total > maxCarried {
		return tooMuch(backends.CodeInvalidTemplate, "spec.companions", fmt.Sprintf("those of %d clusters are too large together", clusters),
			total, maxCarried, "put what is long into an image, or create some of them on the clusters yourself")
	}
	return CheckCompanionObjects("spec.companions", len(p.fw.Spec.Companions), clusters)
}

// CheckDependencies refuses objects that pods refer to which are too large for so many clusters. all is how many clusters need one that does not
// say.
func CheckDependencies(dependencies []backends.Companion, all int) error {
	var total int64
	for _, c := range dependencies {
		clusters := all
		if c.Clusters != nil {
			clusters = len(c.Clusters)
		}
		total += jsonSize(c.Object.Object) * int64(clusters)
	}
	if total <= maxCarried {
		return nil
	}
	return tooMuch(backends.CodeInvalidTemplate, "spec.dependencies", fmt.Sprintf("the %d objects that the pods refer to are too large together on %d clusters",
		len(dependencies), all), total, maxCarried, "put what is long into an image, create some of them on the clusters yourself, or have fewer clusters")
}

// jsonSize is about what a value takes in JSON. It is asked on every pass, and makes nothing.
func jsonSize(v any) int64 {
	size := int64(2)
	switch v := v.(type) {
	case string:
		size += int64(len(v))
	case []any:
		for _, item := range v {
			size += jsonSize(item) + 1
		}
	case map[string]any:
		for key, item := range v {
			size += int64(len(key)) + jsonSize(item) + 4
		}
	}
	return size
}

// CheckCompanionObjects refuses so many objects that travel along with the workload to so many clusters; field is why they do.
func CheckCompanionObjects(field string, objects, clusters int) error {
	if objects*clusters <= maxCompanionObjects {
		return nil
	}
	return &backends.Error{
		Code: backends.CodeInvalidTemplate, Field: field, Value: fmt.Sprintf("%d objects", objects),
		Message: fmt.Sprintf("on %d clusters they are %d together, and the limit is %d", clusters, objects*clusters, maxCompanionObjects),
		Remedy:  "have fewer of them, put several into one, or create some of them on the clusters yourself",
	}
}

// checkSelectors refuses selectors of clusters that are none, or take too long to be asked of every cluster.
func checkSelectors(fw *v1alpha1.FleetWorkload) error {
	if err := placement.CheckSelectors(fw.Spec.Placement); err != nil {
		return err
	}
	total := 0
	for _, o := range fw.Spec.Overrides {
		total += placement.Requirements(o.Clusters)
	}
	if total <= placement.MaxRequirements {
		return nil
	}
	return placement.TooManyRequirements(backends.CodeInvalidOverride, "spec.overrides", total)
}

// checkOverriding refuses overrides that take too long to be tried on the template.
func (p *Plan) checkOverriding() error {
	if cost := p.overrides.Cost(p.size, ""); cost > maxOverriding {
		return tooMuch(backends.CodeInvalidOverride, "spec.overrides",
			fmt.Sprintf("%d overrides of a template of %s are too much work", len(p.fw.Spec.Overrides), amount(p.size)), cost, maxOverriding,
			"make the template smaller, or have fewer overrides, patches of lists and metadata, and variables")
	}
	return nil
}

// manifests are those that were made: clusters with the same overrides and replicas share one, and whatever is worked out from it. They
// are not to be changed.
type manifests struct {
	made map[variation]*unstructured.Unstructured
	// overridden are those without replicas, by the overrides that select a cluster.
	overridden map[string]*unstructured.Unstructured
	// variants is what was spent of maxVariants, size of maxManifests, objects of maxMade.
	variants, size int64
	objects        int
}

// variation is what a manifest depends on, besides the template.
type variation struct {
	overrides string
	replicas  int32
	counted   bool
}

func newManifests() *manifests {
	return &manifests{made: map[variation]*unstructured.Unstructured{}, overridden: map[string]*unstructured.Unstructured{}}
}

// spendOverridden counts a set of overrides that is to be applied, and refuses it when there are too many.
func (m *manifests) spendOverridden(p *Plan, selecting string) error {
	if m.objects += p.objects; m.objects > maxMade && strings.Contains(selecting, "1") {
		return &backends.Error{
			Code: backends.CodeInvalidOverride, Field: "spec.overrides", Value: fmt.Sprintf("%d objects", m.objects),
			Message: fmt.Sprintf("there are too many {...} in what overrides make of the template for different clusters, and the limit is %d", maxMade),
			Remedy:  "make the template smaller, or let more clusters have the same overrides",
		}
	}
	if m.variants += p.overrides.Cost(p.size, selecting); m.variants <= maxVariants {
		return nil
	}
	return tooMuch(backends.CodeInvalidOverride, "spec.overrides", "what overrides make of the template for different clusters is too large together",
		m.variants, maxVariants, "make the template smaller, or let more clusters have the same overrides")
}

// spend counts a manifest that is to be made, and refuses it when there are too many.
func (m *manifests) spend(p *Plan, v variation) error {
	if m.size += p.overrides.Size(p.size, v.overrides); m.size <= maxManifests {
		return nil
	}
	return tooMuch(backends.CodeInvalidTemplate, "spec.template", "the manifests of all clusters, as far as they differ, are too large together",
		m.size, maxManifests, "make the template smaller, or let more clusters have the same overrides and replicas")
}
