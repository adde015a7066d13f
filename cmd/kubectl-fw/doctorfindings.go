package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// grade says how bad a finding is.
type grade string

const (
	gradeOK      grade = "ok"
	gradeUnknown grade = "unknown"
	gradeNote    grade = "note"
	gradeProblem grade = "problem"
)

// aspect is what of an installation a finding is about. Programs select findings by it, so it stays as it is.
type aspect string

const (
	aspectClock          aspect = "Clock"
	aspectCRD            aspect = "CRD"
	aspectLease          aspect = "Lease"
	aspectWebhook        aspect = "Webhook"
	aspectConnection     aspect = "Connection"
	aspectClusters       aspect = "Clusters"
	aspectKinds          aspect = "Kinds"
	aspectRights         aspect = "Rights"
	aspectBindings       aspect = "Bindings"
	aspectOpenKruise     aspect = "OpenKruise"
	aspectFleetWorkloads aspect = "FleetWorkloads"
)

// finding is one thing that was looked at: well and ill make one, so that nothing is found wrong without a remedy.
type finding struct {
	// About is what was looked at: the management cluster, a backend, or FleetWorkloads.
	About   string `json:"about"`
	Aspect  aspect `json:"aspect"`
	Grade   grade  `json:"grade"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// remedy is what to do about a finding; do makes one.
type remedy struct{ text string }

func do(format string, args ...any) remedy { return remedy{fmt.Sprintf(format, args...)} }

// anyway is what to do where nothing better is known.
const anyway = "look for the message in docs/troubleshooting.md, or send it with a report"

func well(of aspect, format string, args ...any) finding {
	return finding{Aspect: of, Grade: gradeOK, Message: fmt.Sprintf(format, args...)}
}

func ill(is grade, of aspect, what remedy, format string, args ...any) finding {
	return finding{Aspect: of, Grade: is, Message: fmt.Sprintf(format, args...), Remedy: cmp.Or(what.text, anyway)}
}

// unread is about what could not be looked at.
func unread(of aspect, what string, err error) finding {
	if apierrors.IsForbidden(err) {
		return ill(gradeUnknown, of, do("get the right to read it, or have an administrator run this"), "%s: you may not read it", what)
	}
	return ill(gradeProblem, of, do("check that the API server answers, and the network: kubectl get --raw /readyz"), "%s cannot be read: %v", what, err)
}

// lookTimeout bounds what a look takes; an answer that does not come is a finding.
const lookTimeout = 20 * time.Second

// look looks at one thing.
type look func(context.Context) []finding

// atOnce looks at several things at a time, and tells what was found in their order.
func atOnce(ctx context.Context, looks ...look) (all []finding) {
	found := make([][]finding, len(looks))
	var group sync.WaitGroup
	for i, look := range looks {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			found[i] = look(ctx)
		})
	}
	group.Wait()
	for _, some := range found {
		all = append(all, some...)
	}
	return all
}

// section are the findings about one thing.
type section struct {
	title    string
	findings []finding
}

// diagnosis is all that was found, as programs read it.
type diagnosis struct {
	Problems int       `json:"problems"`
	Findings []finding `json:"findings"`
}

func diagnose(sections []section) diagnosis {
	d := diagnosis{Findings: []finding{}}
	for _, s := range sections {
		for _, f := range s.findings {
			f.About, f.Message = s.title, oneLine(f.Message)
			if f.Grade == gradeProblem {
				d.Problems++
			}
			d.Findings = append(d.Findings, f)
		}
	}
	return d
}

// report prints what was found, and fails when there is a problem.
func report(out io.Writer, output string, sections []section) error {
	d := diagnose(sections)
	var err error
	switch output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(d)
	case "yaml":
		var raw []byte
		if raw, err = yaml.Marshal(d); err == nil {
			_, err = out.Write(raw)
		}
	default:
		writeFindings(out, sections)
	}
	if err != nil {
		return fmt.Errorf("print the findings: %w", err)
	}
	if d.Problems > 0 {
		return errors.New(counted(d.Problems, "problem", "problems") + " found")
	}
	return nil
}

func writeFindings(out io.Writer, sections []section) {
	for i, s := range sections {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, s.title)
		for _, f := range s.findings {
			fmt.Fprintf(out, "  %-8s %s\n", f.Grade, oneLine(f.Message))
			if f.Remedy != "" {
				fmt.Fprintf(out, "  %-8s %s\n", "", f.Remedy)
			}
		}
	}
}
