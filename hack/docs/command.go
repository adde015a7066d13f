// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Command is a call of a program, as a page shows it.
type Command struct {
	Where string
	// Variables are the names of those that are set before the program's name.
	Variables []string
	// Words are what stands after the program's name.
	Words []string
	// Typed is whether it stands in a block, as one would type it. In prose, names of objects may be left out.
	Typed bool
}

var (
	assignments = regexp.MustCompile(`^(\w+=('[^']*'|\S*) +)+`)
	variable    = regexp.MustCompile(`(\w+)=('[^']*'|\S*) +`)
)

// Commands returns the calls of a program, which may have a name of several words.
func (p Page) Commands(program string) []Command {
	var found []Command
	add := func(where, text string, typed bool) {
		text = strings.TrimPrefix(text, "$ ")
		set := assignments.FindString(text)
		if rest, is := strings.CutPrefix(text[len(set):]+" ", program+" "); is {
			command := Command{Where: where, Words: words(rest), Typed: typed}
			for _, match := range variable.FindAllStringSubmatch(set, -1) {
				command.Variables = append(command.Variables, match[1])
			}
			found = append(found, command)
		}
	}
	for _, block := range p.Blocks {
		if !slices.Contains([]string{"", "sh", "console"}, block.Language) {
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
