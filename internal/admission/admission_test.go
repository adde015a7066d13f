package admission

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/interpreter"
	"github.com/fleetworkload/fleetworkload/internal/proposal"
)

const shipped = `{"metadata":{"name":"web","namespace":"shop"},"spec":{"backend":"ocm","dependencies":"Propagate","placement":{"clusters":{"names":["m1"]}},
	"template":{"apiVersion":"apps/v1","kind":"Deployment","spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"main","image":"nginx:1","envFrom":[{"secretRef":{"name":"key"}}]}]}}}}}}`

// asked is an API server that allows what the test says, and remembers what it was asked.
type asked struct {
	reviews []authorizationv1.SubjectAccessReviewSpec
	allows  func(text string) (bool, error)
}

func (a *asked) validator(t *testing.T) *Validator {
	t.Helper()
	kinds, err := interpreter.New()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &Validator{
		Kinds: kinds, Decoder: admission.NewDecoder(scheme),
		Reviews: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				review, is := obj.(*authorizationv1.SubjectAccessReview)
				if !is {
					t.Errorf("it creates %T", obj)
					return nil
				}
				a.reviews = append(a.reviews, review.Spec)
				about := review.Spec.ResourceAttributes
				allowed, err := a.allows(strings.TrimSpace(about.Verb + " " + about.Resource + " " + about.Name))
				review.Status.Allowed = allowed
				return err
			},
		}).Build(),
	}
}

func request(operation admissionv1.Operation, old, now string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "shop", Object: runtime.RawExtension{Raw: []byte(now)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
		UserInfo: authenticationv1.UserInfo{
			Username: "jane", UID: "7", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}},
		},
	}}
}

// edited is the FleetWorkload with something else in its spec.
func edited(t *testing.T, field, value string) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(shipped), &object); err != nil {
		t.Fatal(err)
	}
	spec, _ := object["spec"].(map[string]any)
	spec[field] = json.RawMessage(value)
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The author is asked for with all that they are, about all that is shipped and read.
func TestWhatIsAskedOfAnAuthor(t *testing.T) {
	api := &asked{allows: func(string) (bool, error) { return true, nil }}
	if got := api.validator(t).Handle(t.Context(), request(admissionv1.Create, "", shipped)); !got.Allowed {
		t.Fatalf("it is refused: %+v", got.Result)
	}
	var texts []string
	for _, review := range api.reviews {
		about := review.ResourceAttributes
		texts = append(texts, about.Verb+" "+about.Group+"/"+about.Resource+" "+about.Name+" in "+about.Namespace)
		if review.User != "jane" || review.UID != "7" || !slices.Equal(review.Groups, []string{"devs"}) || review.Extra["scopes"][0] != "a" {
			t.Errorf("it is asked for %+v", review)
		}
	}
	if want := []string{"create apps/deployments  in shop", "get /secrets key in shop"}; !slices.Equal(texts, want) {
		t.Errorf("it asks %q, not %q", texts, want)
	}
}

func TestAnswers(t *testing.T) {
	everything := func(string) (bool, error) { return true, nil }
	nothing := func(string) (bool, error) { return false, nil }
	but := func(refused string) func(string) (bool, error) {
		return func(text string) (bool, error) { return text != refused, nil }
	}
	for name, test := range map[string]struct {
		operation admissionv1.Operation
		now       string
		allows    func(string) (bool, error)
		want      string // part of the refusal; empty when it is allowed
	}{
		"without the right to create": {admissionv1.Create, shipped, but("create deployments"), `user "jane" may not create deployments.apps in namespace "shop"`},
		"without the right to read":   {admissionv1.Create, shipped, but("get secrets key"), `user "jane" may not get secrets key in namespace "shop"`},
		"an account that they may use": {admissionv1.Create, edited(t, "serviceAccountName", `"deployer"`), func(text string) (bool, error) {
			return text == "use serviceaccounts deployer", nil
		}, ""},
		"an account that they may not use": {admissionv1.Create, edited(t, "serviceAccountName", `"deployer"`), but("use serviceaccounts deployer"),
			`may not use serviceaccounts deployer in namespace "shop"`},
		"a kind that is not carried": {admissionv1.Create, edited(t, "template", `{"apiVersion":"v1","kind":"Node"}`), but("create *"),
			"FleetWorkloads may not carry this kind"},
		"a kind that is not carried, by who may everything": {admissionv1.Create, edited(t, "template", `{"apiVersion":"v1","kind":"Node"}`), everything, ""},
		"nobody answers": {admissionv1.Create, shipped, func(string) (bool, error) { return false, errors.New("the API server is away") },
			"nothing is changed, try again"},
		"nonsense":                 {admissionv1.Create, `{"spec":7}`, everything, "read the FleetWorkload"},
		"nothing changed":          {admissionv1.Update, shipped, nothing, ""},
		"scaled":                   {admissionv1.Update, edited(t, "replicas", `9`), nothing, ""},
		"suspended":                {admissionv1.Update, edited(t, "suspend", `true`), nothing, ""},
		"kept when it is deleted":  {admissionv1.Update, edited(t, "deletionPolicy", `"Orphan"`), nothing, ""},
		"placed on another":        {admissionv1.Update, edited(t, "placement", `{"clusters":{"names":["m2"]}}`), nothing, "may not create"},
		"moved":                    {admissionv1.Update, edited(t, "backend", `"karmada"`), nothing, "may not create"},
		"another companion":        {admissionv1.Update, edited(t, "companions", `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}]`), but("create services"), "create services"},
		"another override":         {admissionv1.Update, edited(t, "overrides", `[{"name":"all","env":[{"container":"main","set":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"other","key":"k"}}}]}]}]`), but("get secrets other"), "get secrets other"},
		"an account instead":       {admissionv1.Update, edited(t, "serviceAccountName", `"deployer"`), nothing, "may not use serviceaccounts deployer"},
		"deletion is not asked of": {admissionv1.Delete, "", nothing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := &asked{allows: test.allows}
			got := api.validator(t).Handle(t.Context(), request(test.operation, shipped, test.now))
			if got.Allowed != (test.want == "") || got.Result != nil && !strings.Contains(got.Result.Message, test.want) {
				t.Errorf("allowed: %t, %+v", got.Allowed, got.Result)
			}
		})
	}
}

// Whoever asks what a spec comes to needs the rights to have it carried out, and once it is asked, nobody needs them for something else.
func TestWhatIsProposed(t *testing.T) {
	proposing := func(spec string) string {
		var fw v1alpha1.FleetWorkload
		if err := json.Unmarshal([]byte(spec), &fw); err != nil {
			t.Fatal(err)
		}
		value, err := proposal.Encode(fw.Spec)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(shipped, `"name":"web",`, `"name":"web","annotations":{"`+v1alpha1.AnnotationPropose+`":"`+value+`"},`, 1)
	}
	other := proposing(edited(t, "companions", `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"}}]`))
	for name, test := range map[string]struct {
		operation admissionv1.Operation
		old, now  string
		refused   string
		want      string
	}{
		"with the rights":                  {admissionv1.Update, shipped, other, "", ""},
		"without the right to create":      {admissionv1.Update, shipped, other, "create services", "may not create services"},
		"without the right to read":        {admissionv1.Update, shipped, proposing(shipped), "get secrets key", "may not get secrets key"},
		"of a new one":                     {admissionv1.Create, "", other, "create services", "may not create services"},
		"an account that they may not use": {admissionv1.Update, shipped, proposing(edited(t, "serviceAccountName", `"deployer"`)), "use serviceaccounts deployer", "may not use"},
		"it was asked before":              {admissionv1.Update, other, other, "create services", ""},
		"it is asked no more":              {admissionv1.Update, other, shipped, "create deployments", ""},
		"what no API server would admit":   {admissionv1.Update, shipped, proposing(edited(t, "backend", `""`)), "create deployments", ""},
		"what nobody can read":             {admissionv1.Update, shipped, strings.Replace(other, `propose":"`, `propose":"x`, 1), "create deployments", ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := &asked{allows: func(text string) (bool, error) { return text != test.refused, nil }}
			got := api.validator(t).Handle(t.Context(), request(test.operation, test.old, test.now))
			if got.Allowed != (test.want == "") || got.Result != nil && !strings.Contains(got.Result.Message, test.want) {
				t.Errorf("allowed: %t, %+v", got.Allowed, got.Result)
			}
		})
	}
}

// Dependencies that the operator leaves out need no right, and what a status says gives none.
func TestWhatIsNotAskedFor(t *testing.T) {
	api := &asked{allows: func(text string) (bool, error) { return text == "create deployments", nil }}
	v := api.validator(t)
	v.LeaveOut = []string{"Secret"}
	now := strings.Replace(shipped, `"spec":{"backend"`, `"status":{"workload":{"apiVersion":"apps/v1","kind":"DaemonSet","name":"x"}},"spec":{"backend"`, 1)
	if got := v.Handle(t.Context(), request(admissionv1.Create, "", now)); !got.Allowed {
		t.Errorf("it is refused: %+v", got.Result)
	}
}

// A field that is added to the spec must be asked for, or free, on purpose.
func TestEveryFieldIsAskedForOrFree(t *testing.T) {
	spec := reflect.TypeFor[v1alpha1.FleetWorkloadSpec]()
	var all []string
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		all = append(all, name)
	}
	known := slices.Concat(Asked, Free)
	slices.Sort(all)
	slices.Sort(known)
	if !slices.Equal(all, known) {
		t.Errorf("the spec has %q, known are %q", all, known)
	}
}

// The API server asks just where this code would: config/webhook has the same fields.
func TestTheConfigurationAsksForTheSame(t *testing.T) {
	raw, err := os.ReadFile("../../config/webhook/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(raw, &configuration); err != nil {
		t.Fatal(err)
	}
	want := "request.operation == 'CREATE'"
	for _, field := range Asked {
		want += " || object.spec.?" + field + " != oldObject.spec.?" + field
	}
	proposed := "metadata.?annotations[?'" + v1alpha1.AnnotationPropose + "'].orValue('')"
	want += " || object." + proposed + " != oldObject." + proposed
	if got := configuration.Webhooks[0].MatchConditions[0].Expression; got != want || len(configuration.Webhooks[0].MatchConditions) > 1 {
		t.Errorf("it asks when\n%s, not when\n%s", got, want)
	}
	if path := configuration.Webhooks[0].ClientConfig.Service.Path; *path != Path {
		t.Errorf("it calls %s", *path)
	}
}
