package main

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// endpoint is an API server that is looked at.
type endpoint struct {
	host   string
	cfg    *rest.Config
	client *http.Client
	err    error
}

func newEndpoint(cfg *rest.Config) endpoint {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout, cfg.QPS = doctorTimeout, -1
	httpClient, err := rest.HTTPClientFor(cfg)
	return endpoint{host: cfg.Host, cfg: cfg, client: httpClient, err: err}
}

// lookAtReach tells whether it can be reached, and compares clocks.
func (e endpoint) lookAtReach(ctx context.Context) []finding {
	return []finding{e.lookAtClock(ctx, "it can be reached, and its clock is right")}
}

// lookAtClock compares this machine's clock with the API server's. An operator that runs elsewhere has another one.
func (e endpoint) lookAtClock(ctx context.Context, right string) finding {
	const tolerated = 5 * time.Second
	if e.err != nil {
		return unread(aspectClock, "the clock of the API server", e.err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(e.host, "/")+"/version", http.NoBody)
	if err != nil {
		return unread(aspectClock, "the clock of the API server", err)
	}
	answer, err := e.client.Do(request)
	if err != nil {
		return ill(gradeProblem, aspectClock, do("check the address, the network, and that the API server runs"), "it cannot be reached: %v", err)
	}
	defer answer.Body.Close()
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return ill(gradeUnknown, aspectClock, do("compare the clocks by hand: what is between takes the header Date away"), "its clock: it does not tell the time")
	}
	if off := time.Since(theirs); off.Abs() > tolerated {
		return ill(gradeNote, aspectClock, do("set the clocks by NTP"), "its clock and this machine's are %s apart", off.Abs().Round(time.Second))
	}
	return well(aspectClock, "%s", right)
}

// managementLooks are at what the operator needs of its management cluster.
func (o doctorOptions) managementLooks(c client.Reader, now func() time.Time) []look {
	return []look{
		func(ctx context.Context) []finding { return []finding{lookAtCRD(ctx, c)} },
		func(ctx context.Context) []finding { return []finding{o.lookAtLease(ctx, c, now())} },
		func(ctx context.Context) []finding { return o.lookAtWebhook(ctx, c, now()) },
	}
}

// lookAtCRD looks for fields that this program knows and the CRD lacks: what people write there is dropped.
func lookAtCRD(ctx context.Context, c client.Reader) finding {
	const name = "fleetworkloads.apps.fleetworkload.io"
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
	switch {
	case apierrors.IsNotFound(err):
		return ill(gradeProblem, aspectCRD, do("choose the management cluster with --kubeconfig or --context, or install the CRD there"), "it does not serve FleetWorkloads")
	case err != nil:
		return unread(aspectCRD, "the CRD "+name, err)
	}
	if missing := lackedBy(crd); len(missing) > 0 {
		return ill(gradeProblem, aspectCRD, do("upgrade the chart, or apply the CRD of this release: kubectl apply --server-side -k config/crd"),
			"the CRD is older than this program; it lacks %s", strings.Join(missing, ", "))
	}
	return well(aspectCRD, "the CRD has all fields that this program knows")
}

// lackedBy are the fields of spec and status that a CRD does not have.
func lackedBy(crd *unstructured.Unstructured) (missing []string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		v, is := version.(map[string]any)
		if !is || v["name"] != v1alpha1.GroupVersion.Version {
			continue
		}
		for part, goType := range map[string]reflect.Type{
			"spec": reflect.TypeFor[v1alpha1.FleetWorkloadSpec](), "status": reflect.TypeFor[v1alpha1.FleetWorkloadStatus](),
		} {
			known, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", part, "properties")
			for i := range goType.NumField() {
				field, _, _ := strings.Cut(goType.Field(i).Tag.Get("json"), ",")
				if _, has := known[field]; !has && field != "" {
					missing = append(missing, part+"."+field)
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// lookAtLease tells whether an operator works: one replica renews the lease every few seconds.
func (o doctorOptions) lookAtLease(ctx context.Context, c client.Reader, now time.Time) finding {
	const silent = time.Minute
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: o.operatorNamespace, Name: o.lease}
	pods := fmt.Sprintf("look at the operator's pods: kubectl get pods -n %s", o.operatorNamespace)
	err := c.Get(ctx, key, lease)
	switch {
	case apierrors.IsNotFound(err):
		return ill(gradeProblem, aspectLease, do("%s; an operator elsewhere is found with --operator-namespace", pods), "no operator has led: there is no lease %s", key)
	case err != nil:
		return unread(aspectLease, "the lease "+key.String(), err)
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil:
		return ill(gradeProblem, aspectLease, do("%s", pods), "no operator leads: nobody holds the lease %s", key)
	case now.Sub(lease.Spec.RenewTime.Time) > silent:
		return ill(gradeProblem, aspectLease, do("%s", pods), "no operator leads: %s has not renewed the lease %s for %s", *lease.Spec.HolderIdentity, key,
			age(&metav1.Time{Time: lease.Spec.RenewTime.Time}, now))
	default:
		return well(aspectLease, "the operator leads as %s", *lease.Spec.HolderIdentity)
	}
}
