package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

const doctorLong = `Look for what is wrong with an installation, and say what to do about it: the CRD, the operator's lease, its webhook, clocks, FleetWorkloads
that need a person, and with --config each backend with its clusters. Nothing is changed.

Run it on a machine that reaches the management cluster and, with --config, the backends. What you may not read is said to be unknown.

The exit code is 0 when there is no problem, and 1 when there is one.`

const doctorExample = `  # The management cluster
  kubectl-fw doctor

  # The backends, too
  kubectl-fw doctor --config operator.yaml`

// grade says how bad a finding is.
type grade string

const (
	gradeOK      grade = "ok"
	gradeUnknown grade = "unknown"
	gradeNote    grade = "note"
	gradeProblem grade = "problem"
)

// finding is one thing that was looked at.
type finding struct {
	is     grade
	what   string
	remedy string
}

// section are the findings about one thing.
type section struct {
	title    string
	findings []finding
}

func (s *section) add(is grade, remedy, format string, args ...any) {
	s.findings = append(s.findings, finding{is, fmt.Sprintf(format, args...), remedy})
}

// unread notes what could not be looked at.
func (s *section) unread(what string, err error) {
	if apierrors.IsForbidden(err) {
		s.add(gradeUnknown, "", "%s: you may not read it", what)
		return
	}
	s.add(gradeProblem, "", "%s cannot be read: %v", what, err)
}

type doctorOptions struct {
	config, operatorNamespace, lease string
}

func newDoctorCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var opts doctorOptions
	cmd := &cobra.Command{
		Use:     "doctor [--config FILE]",
		Short:   "Look for what is wrong with an installation, and say what to do about it",
		Long:    doctorLong,
		Example: doctorExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), flags, streams.Out) },
	}
	cmd.Flags().StringVar(&opts.config, "config", "", "the operator's configuration file, to look at the backends")
	cmd.Flags().StringVar(&opts.operatorNamespace, "operator-namespace", "fleetworkload-system", "where the operator is, on the management cluster")
	cmd.Flags().StringVar(&opts.lease, "leader-election-id", "fleetworkload.fleetworkload.io", "name of the operator's lease")
	return cmd
}

func (o doctorOptions) run(ctx context.Context, flags *genericclioptions.ConfigFlags, out io.Writer) error {
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("connect to the management cluster: %w", err)
	}
	c, err := newClient(flags)
	if err != nil {
		return err
	}
	management := &section{title: "management cluster " + cfg.Host}
	lookAtClock(ctx, management, cfg)
	lookAtCRD(ctx, management, c)
	o.lookAtLease(ctx, management, c, time.Now())
	lookAtWebhook(ctx, management, c)
	sections := []*section{management}
	var from source
	if o.config != "" {
		live, err := openLive(ctx, flags, o.config, o.operatorNamespace)
		if err != nil {
			return err
		}
		defer live.close()
		from = live
		for _, b := range live.cfg.Backends {
			s := &section{title: fmt.Sprintf("backend %s (%s)", b.Name, b.Type)}
			lookAtBackend(s, live, b, time.Now())
			sections = append(sections, s)
		}
	}
	fleet := &section{title: "FleetWorkloads"}
	lookAtFleetWorkloads(ctx, fleet, c, from)
	return report(out, append(sections, fleet))
}

// lookAtClock compares this machine's clock with the API server's. An operator that runs elsewhere has another one.
func lookAtClock(ctx context.Context, s *section, cfg *rest.Config) {
	const tolerated = 5 * time.Second
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		s.unread("the clock of the API server", err)
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(cfg.Host, "/")+"/version", nil)
	if err != nil {
		s.unread("the clock of the API server", err)
		return
	}
	answer, err := httpClient.Do(request)
	if err != nil {
		s.add(gradeProblem, "check the address, the network, and that the API server runs", "it cannot be reached: %v", err)
		return
	}
	defer answer.Body.Close()
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		s.add(gradeUnknown, "", "its clock: it does not tell the time")
		return
	}
	if off := time.Since(theirs); off.Abs() > tolerated {
		s.add(gradeNote, "set the clocks by NTP", "its clock and this machine's are %s apart", off.Abs().Round(time.Second))
		return
	}
	s.add(gradeOK, "", "it can be reached, and its clock is right")
}

// lookAtCRD looks for fields that this program knows and the CRD lacks: what people write there is dropped.
func lookAtCRD(ctx context.Context, s *section, c client.Reader) {
	const name = "fleetworkloads.apps.fleetworkload.io"
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
	switch {
	case apierrors.IsNotFound(err):
		s.add(gradeProblem, "choose the management cluster with --kubeconfig or --context, or install the CRD there", "it does not serve FleetWorkloads")
	case err != nil:
		s.unread("the CRD "+name, err)
	default:
		if missing := lackedBy(crd); len(missing) > 0 {
			s.add(gradeProblem, "upgrade the chart, or apply the CRD of this release: kubectl apply --server-side -k config/crd", "the CRD is older than this program; it lacks %s", strings.Join(missing, ", "))
			return
		}
		s.add(gradeOK, "", "the CRD has all fields that this program knows")
	}
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
func (o doctorOptions) lookAtLease(ctx context.Context, s *section, c client.Reader, now time.Time) {
	const silent = time.Minute
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: o.operatorNamespace, Name: o.lease}
	remedy := fmt.Sprintf("look at the operator's pods: kubectl get pods -n %s", o.operatorNamespace)
	err := c.Get(ctx, key, lease)
	switch {
	case apierrors.IsNotFound(err):
		s.add(gradeProblem, remedy+"; an operator elsewhere is found with --operator-namespace", "no operator has led: there is no lease %s", key)
	case err != nil:
		s.unread("the lease "+key.String(), err)
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil:
		s.add(gradeProblem, remedy, "no operator leads: nobody holds the lease %s", key)
	case now.Sub(lease.Spec.RenewTime.Time) > silent:
		s.add(gradeProblem, remedy, "no operator leads: %s has not renewed the lease %s for %s", *lease.Spec.HolderIdentity, key, age(&metav1.Time{Time: lease.Spec.RenewTime.Time}, now))
	default:
		s.add(gradeOK, "", "the operator leads as %s", *lease.Spec.HolderIdentity)
	}
}

// lookAtWebhook tells whether authors are asked for their rights.
func lookAtWebhook(ctx context.Context, s *section, c client.Reader) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := c.Get(ctx, client.ObjectKey{Name: "fleetworkload"}, configuration)
	switch {
	case apierrors.IsNotFound(err):
		s.add(gradeNote, "turn the webhook on, or bound who may create FleetWorkloads otherwise (docs/security.md)",
			"there is no webhook: who may create a FleetWorkload may ship what the operator may")
	case err != nil:
		s.unread("the webhook's configuration", err)
	case slices.ContainsFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return len(w.ClientConfig.CABundle) == 0 }):
		s.add(gradeProblem, "look at the operator's log: it puts its own certificate authority there", "the webhook has no certificate authority: nobody can create or edit a FleetWorkload")
	default:
		s.add(gradeOK, "", "the webhook is configured")
	}
}

// lookAtBackend connects to a backend as the operator does, and looks at its clusters.
func lookAtBackend(s *section, from source, b config.Backend, now time.Time) {
	found, err := from.backend(b.Name)
	if err != nil {
		var refused *backends.Error
		remedy := ""
		if errors.As(err, &refused) {
			remedy = refused.Remedy
		}
		s.add(gradeProblem, remedy, "it cannot be used from here: %v", err)
		return
	}
	ready := 0
	for _, c := range found.fleet.Clusters {
		switch {
		case c.Leaving:
			s.add(gradeNote, "", "cluster %s is being taken off it", c.Name)
		case c.Ready != metav1.ConditionTrue:
			s.add(gradeProblem, "look at the cluster's agent, and at the network between the two", "cluster %s is not ready%s: %s", c.Name, since(c.ReadySince, now), cmp.Or(c.Message, "the backend has lost contact"))
		default:
			ready++
		}
		if c.Identity == "" {
			s.add(gradeNote, "name it in clusterAliases if another backend knows it, too", "cluster %s does not tell the UID of its namespace kube-system: hand-overs know it by its name only", c.Name)
		}
	}
	if len(found.fleet.Clusters) == 0 {
		s.add(gradeProblem, "register clusters; on OCM bind their ManagedClusterSet (docs/backends.md)", "it has no clusters")
		return
	}
	s.add(gradeOK, "", "connected; %d of %s ready", ready, counted(len(found.fleet.Clusters), "cluster", "clusters"))
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " for " + age(&metav1.Time{Time: t}, now)
}

// lookAtFleetWorkloads finds those that need a person, and those whose backend nobody has configured.
func lookAtFleetWorkloads(ctx context.Context, s *section, c client.Reader, from source) {
	all := getOptions{everywhere: true}
	list, err := all.list(ctx, c)
	if err != nil {
		s.unread("FleetWorkloads", err)
		return
	}
	counts := [3]int{}
	for i := range list.Items {
		fw := &list.Items[i]
		counts[urgency(fw)]++
		key := client.ObjectKeyFromObject(fw)
		if urgency(fw) == 0 {
			reason, message := stateOf(fw)
			s.add(gradeProblem, "docs/conditions.md#"+strings.ToLower(reason), "%s: %s: %s", key, reason, message)
		}
		if from != nil && !slices.Contains(from.names(), fw.Spec.Backend) {
			s.add(gradeProblem, "correct spec.backend, or add the backend to the configuration", "%s: the configuration has no backend %q", key, fw.Spec.Backend)
		}
	}
	s.add(gradeOK, "", "%d in all: %d as asked, %d on their way", len(list.Items), counts[2], counts[1])
}

// report prints what was found, and fails when there is a problem.
func report(out io.Writer, sections []*section) error {
	problems := 0
	for i, s := range sections {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, s.title)
		for _, f := range s.findings {
			fmt.Fprintf(out, "  %-8s %s\n", f.is, oneLine(f.what))
			if f.remedy != "" {
				fmt.Fprintf(out, "  %-8s %s\n", "", f.remedy)
			}
			if f.is == gradeProblem {
				problems++
			}
		}
	}
	if problems > 0 {
		return errors.New(counted(problems, "problem", "problems") + " found")
	}
	return nil
}
