// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Step is what somebody does who follows a page: write a file, put a part into one, or type a command.
type Step struct {
	Where string
	// File is the name that a block of YAML gives itself in its first line, "# NAME.yaml". With more words in that line, "# NAME.yaml, as it was
	// imported", the file is there already, and Shown is what it has.
	File string
	// LeftOut is the path of a field that Shown leaves out: "# NAME.yaml, without spec.template".
	LeftOut string
	// Part is whether it is YAML that does not say which file it is.
	Part bool
	// Text is the YAML, or the command, without a remark behind it.
	Text string
	// Shown is what the page says that the command prints, or what a file has. It is empty where the page does not say.
	Shown string

	line int
}

var (
	namesItself = regexp.MustCompile(`^# ([a-z][a-z0-9-]*\.yaml)\n`)
	showsItself = regexp.MustCompile(`^# ([a-z][a-z0-9-]*\.yaml), (?:without ([a-zA-Z.]+)|.*)\n`)
	// inProse are the programs whose calls in prose are commands. A program's name alone is none.
	inProse = regexp.MustCompile(`^(kubectl|helm|make|git) `)
	remark  = regexp.MustCompile(` +# [^'"]*$`)
)

// Steps returns what a page has people do, in its order. A block is YAML, code or a picture ("go", "mermaid", "text"), or commands: after "$ ", with
// what they print below them, or a command on each line.
func (p Page) Steps() ([]Step, error) {
	var steps []Step
	for _, block := range p.Blocks {
		switch block.Language {
		case "text", "mermaid", "go":
		case "yaml":
			steps = append(steps, block.file())
		case "", "sh", "console":
			steps = append(steps, block.commands()...)
		default:
			return nil, fmt.Errorf("%s: nobody knows what to do with %q", block.Where, block.Language)
		}
	}
	for _, s := range p.Spans() {
		if inProse.MatchString(s.Text) {
			steps = append(steps, Step{Where: s.Where, Text: s.Text, line: s.Line})
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.line, b.line) })
	return steps, nil
}

// file is the one that a block of YAML is, shows, or is a part of.
func (b Block) file() Step {
	step := Step{Where: b.Where, line: b.Line}
	if name := namesItself.FindStringSubmatch(b.Text); name != nil {
		step.File, step.Text = name[1], b.Text
	} else if name := showsItself.FindStringSubmatch(b.Text); name != nil {
		step.File, step.Shown, step.LeftOut = name[1], b.Text, name[2]
	} else {
		step.Part, step.Text = true, b.Text
	}
	return step
}

// commands are those of a block. A backslash at the end of a line joins it with the next one.
func (b Block) commands() []Step {
	const prompt = "$ "
	var steps []Step
	lines := strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		first := i
		command, typed := strings.CutPrefix(lines[i], prompt)
		if prompted := strings.HasPrefix(b.Text, prompt); prompted && !typed {
			steps[len(steps)-1].Shown += lines[i] + "\n"
			continue
		} else if !prompted && (command == "" || strings.HasPrefix(command, "#")) {
			continue
		}
		for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
		}
		line := b.Line + 1 + first
		steps = append(steps, Step{Where: fmt.Sprintf("%s:%d", b.page, line), Text: remark.ReplaceAllString(command, ""), line: line})
	}
	return steps
}

// Like matches what a page shows of an output: a line of three dots stands for any lines.
func Like(shown string) *regexp.Regexp {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for _, line := range strings.SplitAfter(shown, "\n") {
		if line == "...\n" {
			pattern.WriteString(`(?s:.*\n)?`)
		} else {
			pattern.WriteString(regexp.QuoteMeta(line))
		}
	}
	return regexp.MustCompile(pattern.String() + `$`)
}

// What is another in every run, and what stands for it.
var (
	gap = regexp.MustCompile(` {2,}`)
	age = regexp.MustCompile(`^(\d+[smhd]){1,2}$`)

	everyRun = []struct {
		pattern *regexp.Regexp
		by      string
	}{
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "(date)"},
		{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "(time)"},
		{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "(uid)"},
		{regexp.MustCompile(`\b[0-9a-f]{12}([0-9a-f]{4})?\b`), "(hash)"},
		{regexp.MustCompile(`\b(pass-wave-\d+)-\d{10}\b`), "$1-(token)"},
		{regexp.MustCompile(`\bthe operator leads as \S+`), "the operator leads as (pod)"},
		{regexp.MustCompile(`\bmanagement cluster https://\S+`), "management cluster (address)"},
		// Kubernetes' random names have no vowels, and neither 0, 1 nor 3.
		{regexp.MustCompile(`\b([a-z]+)-[b-df-hj-np-tv-z24-9]{6,10}-[b-df-hj-np-tv-z24-9]{5}\b`), "$1-(hash)-(pod)"},
	}
)

// Alike makes outputs of two runs the same where they have to differ: dates, UIDs, hashes, random names, addresses of API servers, ages that are
// a column of a table, and how wide columns are.
func Alike(output string) string {
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		for _, every := range everyRun {
			line = every.pattern.ReplaceAllString(line, every.by)
		}
		text := strings.TrimLeft(line, " ")
		cells := gap.Split(strings.TrimRight(text, " "), -1)
		for j, cell := range cells {
			if len(cells) > 1 && age.MatchString(cell) {
				cells[j] = "(age)"
			}
		}
		lines[i] = line[:len(line)-len(text)] + strings.Join(cells, "   ")
	}
	return strings.Join(lines, "\n")
}
