// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAMemberKeepsItsMode(t *testing.T) {
	f := testFleet(t)
	if err := f.claim(Options{Members: 3, Pull: []string{"member3"}}); err != nil {
		t.Fatal(err)
	}
	again, err := Open(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.claim(Options{Members: 4}); err != nil {
		t.Fatal(err)
	}
	var pull []string
	for _, m := range again.Members() {
		if m.Pull {
			pull = append(pull, m.Name)
		}
	}
	if !slices.Equal(pull, []string{"member3"}) {
		t.Errorf("in pull mode are %v, want member3", pull)
	}
	for name, want := range map[string]string{"member1": "was made in push mode", "member9": "is no member"} {
		if err := again.claim(Options{Members: 4, Pull: []string{name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s in pull mode: got %v, want %q", name, err, want)
		}
	}
}

// Karmada's controllers have no account in a member that they must not write to.
func TestOnlyTheAgentHasAnAccountOfKarmadaInPullMode(t *testing.T) {
	for _, m := range []Member{{KarmadaName: "m"}, {KarmadaName: "m", Pull: true}} {
		var accounts []string
		for _, user := range m.users() {
			accounts = append(accounts, user.name)
		}
		want := []string{workAgent, "karmada-m", "karmada-impersonator"}
		if m.Pull {
			want = []string{workAgent, karmadaAgentAccount}
		}
		if !slices.Equal(accounts, want) {
			t.Errorf("with pull mode %t the accounts are %v, want %v", m.Pull, accounts, want)
		}
	}
}

func TestOptionalProgramsAreBuiltWhereTheyRun(t *testing.T) {
	f := testFleet(t)
	for _, opts := range []Options{{Members: 1}, {Members: 2, Pull: []string{"member2"}, WorkWebhook: true}} {
		if err := f.claim(opts); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{karmadaAgent, workWebhook} {
			if got := slices.Contains(f.binaries(), name); got != opts.WorkWebhook {
				t.Errorf("with %+v %s is among the programs: %t", opts, name, got)
			}
		}
	}
	if err := f.claim(Options{Members: 2}); err != nil {
		t.Fatal(err)
	}
	if !f.state.WorkWebhook {
		t.Error("the fleet lost its webhook as it was brought up again")
	}
}

// A member comes back where Karmada has been switched off: make demo ends so. Where its API server alone is down, that is waited for.
func TestNothingWaitsForAStoppedKarmada(t *testing.T) {
	self, err := statOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	runs, stopped := &process{PID: os.Getpid(), Started: self.started}, &process{PID: os.Getpid(), Started: "before"}
	for _, pull := range []bool{false, true} {
		for karmada, want := range map[[2]*process]bool{{runs, runs}: true, {stopped, runs}: true, {stopped, stopped}: false} {
			f := testFleet(t)
			f.pki = &pki{dir: f.dir}
			if err := f.state.update(func() {
				f.state.Processes[apiServerName(Karmada)], f.state.Processes["karmada-scheduler"] = karmada[0], karmada[1]
				f.state.Processes["m-kwok"] = runs
			}); err != nil {
				t.Fatal(err)
			}
			units, err := f.unitsBeside(Member{Name: "m", OCMName: "m", KarmadaName: "m", Pull: pull})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, u := range units {
				names = append(names, u.name)
			}
			if got := strings.Contains(strings.Join(names, " "), "m-karmada-"); got != want {
				t.Errorf("pull mode %t, Karmada runs %t: %v", pull, want, names)
			}
			if !slices.Contains(names, "m-ocm-available") || !slices.Contains(names, apiServerName("m")) {
				t.Errorf("pull mode %t, Karmada runs %t: OCM's part or the cluster's own is missing among %v", pull, want, names)
			}
		}
	}
}

func TestComponentsOfABackendIncludeItsAgents(t *testing.T) {
	f := testFleet(t)
	if err := f.state.update(func() {
		for _, name := range []string{"karmada-scheduler", "ocm-placement", "m-karmada-agent", "m-work-agent", "m-kwok", "hub-kube-apiserver"} {
			f.state.Processes[name] = &process{}
		}
	}); err != nil {
		t.Fatal(err)
	}
	for backend, want := range map[string][]string{"karmada": {"karmada-scheduler", "m-karmada-agent"}, "ocm": {"m-work-agent", "ocm-placement"}} {
		got, err := f.ComponentsOf(backend)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the components %v, want %v", backend, got, want)
		}
	}
}
