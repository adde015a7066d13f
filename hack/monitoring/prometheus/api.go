// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

// The answers have the fields of Prometheus' HTTP API.
type (
	alertList struct {
		Alerts []alert `json:"alerts"`
	}
	alert struct {
		Labels      labels.Labels `json:"labels"`
		Annotations labels.Labels `json:"annotations"`
		State       string        `json:"state"`
		ActiveAt    time.Time     `json:"activeAt"`
		Value       string        `json:"value"`
	}
	groupList struct {
		Groups []group `json:"groups"`
	}
	group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		Name      string           `json:"name"`
		Health    rules.RuleHealth `json:"health"`
		LastError string           `json:"lastError,omitempty"`
	}
)

// api serves what the rules say.
func api(manager *rules.Manager) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/alerts", func(w http.ResponseWriter, _ *http.Request) { answer(w, alertList{alerts(manager)}) })
	mux.HandleFunc("GET /api/v1/rules", func(w http.ResponseWriter, _ *http.Request) { answer(w, groupList{groups(manager)}) })
	return mux
}

func answer(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func alerts(manager *rules.Manager) []alert {
	all := []alert{}
	for _, r := range manager.AlertingRules() {
		for _, a := range r.ActiveAlerts() {
			all = append(all, alert{
				Labels: a.Labels, Annotations: a.Annotations, State: a.State.String(), ActiveAt: a.ActiveAt,
				Value: strconv.FormatFloat(a.Value, 'e', -1, 64),
			})
		}
	}
	return all
}

func groups(manager *rules.Manager) []group {
	all := []group{}
	for _, g := range manager.RuleGroups() {
		next := group{Name: g.Name()}
		for _, r := range g.Rules() {
			known := rule{Name: r.Name(), Health: r.Health()}
			if err := r.LastError(); err != nil {
				known.LastError = err.Error()
			}
			next.Rules = append(next.Rules, known)
		}
		all = append(all, next)
	}
	return all
}
