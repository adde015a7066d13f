//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/e2e/proxy"
)

// leads tells whether the operator has the lease.
func (o *operator) leads() (bool, error) {
	families, err := o.measures()
	if err != nil {
		return false, err
	}
	return measure(families, "leader_election_master_status") == 1, nil
}

// signal is sent to the process.
func (o *operator) signal(s syscall.Signal) {
	GinkgoHelper()
	Expect(o.current().cmd.Process.Signal(s)).To(Succeed())
}

// givesUp waits until the process has ended by itself, since it does not lead any more.
func (o *operator) givesUp(ctx context.Context) {
	GinkgoHelper()
	o.expectExit()
	Eventually(o.current().done).WithContext(ctx).WithTimeout(time.Minute).Should(BeClosed(), "who has lost the lease goes on")
	Expect(o.logTail(5)).To(ContainSubstring("leader election lost"))
}

// withinLease is how soon a lost leader is replaced. A lease holds for 15 seconds, and who stands by looks each 2 seconds, or 20 % later
// (controller-runtime pkg/manager, client-go tools/leaderelection). What is left is for a busy machine.
const withinLease = 15*time.Second + 2400*time.Millisecond + 10*time.Second

// pair are two replicas, as the operator is installed.
type pair [2]*operator

// ownPair are two replicas that are not started yet, and the namespace that they watch, for one container or spec.
func ownPair(ctx context.Context, name string, opts operatorOptions) (p pair, namespace string) {
	GinkgoHelper()
	opts.replica = true
	p[0], namespace = ownOperator(ctx, name, opts)
	p[1] = newOperator(name+"-2", p[0].opts)
	DeferCleanup(func(ctx SpecContext) { p.leaveFirst(ctx) })
	return p, namespace
}

// twoReplicas are two that watch all namespaces, and run.
func twoReplicas(ctx context.Context, name string) pair {
	GinkgoHelper()
	p, _ := ownPair(ctx, name, operatorOptions{everywhere: true})
	p.start(ctx)
	return p
}

// leaveFirst ends the second of the two for good.
func (p pair) leaveFirst(ctx context.Context) {
	GinkgoHelper()
	p[1].stop(ctx)
	p[1].close()
}

// start starts both.
func (p pair) start(ctx context.Context) {
	GinkgoHelper()
	for _, o := range p {
		o.start(ctx)
	}
}

// roles are who leads and who stands by.
func (p pair) roles(ctx context.Context) (leader, standby *operator) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var lead []*operator
		for i, o := range p {
			is, err := o.leads()
			g.Expect(err).NotTo(HaveOccurred())
			if is {
				lead, standby = append(lead, o), p[1-i]
			}
		}
		g.Expect(lead).To(HaveLen(1))
		leader = lead[0]
	}).WithContext(ctx).WithTimeout(withinLease).WithPolling(100 * time.Millisecond).Should(Succeed())
	return leader, standby
}

// reaches waits until the one that leads reaches the backends, or does not.
func (p pair) reaches(ctx context.Context, up bool, backends ...string) {
	GinkgoHelper()
	leader, _ := p.roles(ctx)
	leader.reaches(ctx, up, backends...)
}

// takesOver waits until the one that stood by leads, after the other one was killed, which comes back to stand by.
func (p pair) takesOver(ctx context.Context, killed *operator) (leader *operator) {
	GinkgoHelper()
	leader = p[0]
	if killed == leader {
		leader = p[1]
	}
	Eventually(leader.leads).WithContext(ctx).WithTimeout(withinLease).WithPolling(100 * time.Millisecond).Should(BeTrue())
	killed.start(ctx)
	return leader
}

// Laws 1 and 6, as the operator is installed: two replicas, of which one leads.
var _ = Describe("A leader that is lost in a hand-over", Label("laws", "law6", "handover", "karmada", "ocm"), Ordered, long, func() {
	var replicas pair
	BeforeAll(func(ctx SpecContext) {
		replicas, _ = ownPair(ctx, "replica", operatorOptions{everywhere: true, webhook: true})
		replicas.start(ctx)
	})

	It("is not missed by the webhook: each replica answers it, with a certificate that is trusted", func(ctx SpecContext) {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(hub().Get(ctx, client.ObjectKey{Name: "fleetworkload"}, configuration)).To(Succeed())
		trusted := x509.NewCertPool()
		Expect(trusted.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle)).To(BeTrue())
		server := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "localhost", MinVersion: tls.VersionTLS12}}}
		review, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{
				UID: "1", Operation: admissionv1.Create, Namespace: "default", UserInfo: authenticationv1.UserInfo{Username: "nobody"},
				Object: runtime.RawExtension{Raw: []byte(strings.Replace(written("try", "{}"), `"metadata":{`, `"metadata":{"namespace":"default",`, 1))},
			},
		})
		Expect(err).NotTo(HaveOccurred())
		leader, standby := replicas.roles(ctx)
		for _, o := range []*operator{leader, standby} {
			answer, err := server.Post("https://"+o.webhook+"/validate-fleetworkload", "application/json", bytes.NewReader(review))
			Expect(err).NotTo(HaveOccurred())
			raw, err := io.ReadAll(answer.Body)
			Expect(errors.Join(err, answer.Body.Close())).To(Succeed())
			var answered admissionv1.AdmissionReview
			Expect(json.Unmarshal(raw, &answered)).To(Succeed())
			Expect(answered.Response.Allowed).To(BeFalse())
			Expect(answered.Response.Result.Message).To(ContainSubstring(`user "nobody" may not create deployments.apps`))
		}
	})

	DescribeTable("is replaced, and no pod is touched", func(ctx SpecContext, within time.Duration, lose, back func(ctx context.Context, o *operator)) {
		convoys := newConvoys(ctx, "replicas", func(namespace, backend string) *livedOn {
			return carried(workload(namespace, "web", backend, cloneSet, 4), cloneSet)
		})
		leader, standby := replicas.roles(ctx)
		leader.journal.Reset()
		turn(ctx, named(convoys)...)
		writes := 1 + rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0)).IntN(40)
		Eventually(func() int { return len(leader.journal.Entries()) }).WithContext(ctx).WithTimeout(readyTimeout).
			WithPolling(10 * time.Millisecond).Should(BeNumerically(">=", writes))
		start := time.Now()
		lose(ctx, leader)
		Eventually(standby.leads).WithContext(ctx).WithTimeout(within).WithPolling(100 * time.Millisecond).Should(BeTrue())
		AddReportEntry("replaced", fmt.Sprintf("after %d writes of the hand-over, in %s", writes, time.Since(start).Round(time.Second/10)))
		arrive(ctx, named(convoys)...)
		back(ctx, leader)
		Expect(standby.leads()).To(BeTrue(), "who came back took the lease away")
		for _, c := range convoys {
			c.unharmed(ctx)
		}
		arrive(ctx, named(convoys)...)
	},
		Entry("when it stops, at once", 10*time.Second,
			func(ctx context.Context, o *operator) { o.stop(ctx) },
			func(ctx context.Context, o *operator) { o.start(ctx) }),
		Entry("when it is killed, within its lease", withinLease,
			func(_ context.Context, o *operator) { o.kill() },
			func(ctx context.Context, o *operator) { o.start(ctx) }),
		Entry("when it freezes, within its lease, and gives up when it wakes", withinLease,
			func(_ context.Context, o *operator) { o.signal(syscall.SIGSTOP) },
			func(ctx context.Context, o *operator) {
				o.signal(syscall.SIGCONT)
				o.givesUp(ctx)
				o.start(ctx)
			}),
		Entry("when it cannot reach the management cluster, within its lease", withinLease,
			func(_ context.Context, o *operator) { o.management.Set(proxy.Blackhole) },
			func(ctx context.Context, o *operator) {
				o.givesUp(ctx)
				o.management.Set(proxy.Forward)
				o.start(ctx)
			}),
	)
})
