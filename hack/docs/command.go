// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Command is a call of a program, as a page shows it.
type Command struct {
	Where string
	// Words are what stands after the program's name.
	Words []string
	// Typed is whether it stands in a block, as one would type it. In prose, names of objects may be left out.
	Typed bool
}

var assignments = regexp.MustCompile(`^(\w+=('[^']*'|\S*) +)+`)

// Commands returns the calls of a program, which may have a name of several words.
func (p Page) Commands(program string) []Command {
	var found []Command
	add := func(where, text string, typed bool) {
		text = assignments.ReplaceAllString(strings.TrimPrefix(text, "$ "), "")
		if rest, is := strings.CutPrefix(text+" ", program+" "); is {
			found = append(found, Command{Where: where, Words: words(rest), Typed: typed})
		}
	}
	for _, block := range p.Blocks {
		if block.Language != "" && block.Language != "sh" {
			continue
		}
		for _, line := range strings.Split(strings.ReplaceAll(block.Text, "\\\n", " "), "\n") {
			add(fmt.Sprintf("%s: %s", block.Where, line), line, true)
		}
	}
	for _, s := range p.Spans() {
		add(fmt.Sprintf("%s: %s", s.Where, s.Text), s.Text, false)
	}
	return found
}

// words splits a command as a shell does, up to where it is redirected, piped, or followed by a comment or another one.
func words(text string) []string {
	var found []string
	var word strings.Builder
	quote, begun := rune(0), false
	end := func() {
		if begun {
			found = append(found, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			end()
		case quote == 0 && !begun && strings.ContainsRune("#|>;&", r), quote == 0 && r == ';':
			end()
			return found
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	end()
	return found
}
