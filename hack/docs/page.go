// SPDX-License-Identifier: Apache-2.0

// Package docs reads the pages of the documentation, so that tests can hold what they say against the code.
package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Page is one Markdown file.
type Page struct {
	// Path is relative to the repository, with slashes.
	Path string
	// Prose is the text with fenced blocks emptied, line by line.
	Prose string
	// Blocks are the fenced ones.
	Blocks []Block
}

// Block is a fenced block.
type Block struct {
	// Where is the page and the line of the fence.
	Where string
	// Line is that of the fence.
	Line int
	// Language is the first word after the fence.
	Language string
	Text     string

	page string
}

// Read returns the pages of the repository at root: those beside its README, and those of docs.
func Read(root string) ([]Page, error) {
	var pages []Page
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			page, err := parse(filepath.ToSlash(relative), string(text))
			if err != nil {
				return nil, err
			}
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("no page in %s", root)
	}
	return pages, nil
}

func parse(path, text string) (Page, error) {
	page := Page{Path: path}
	var prose, inside []string
	var open *Block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			language, _, _ := strings.Cut(fence, " ")
			open, inside = &Block{Where: fmt.Sprintf("%s:%d", path, i+1), Line: i + 1, Language: language, page: path}, nil
		case isFence:
			open.Text = strings.Join(inside, "\n") + "\n"
			page.Blocks, open = append(page.Blocks, *open), nil
		case open != nil:
			inside = append(inside, line)
		default:
			prose = append(prose, line)
			continue
		}
		prose = append(prose, "")
	}
	if open != nil {
		return page, fmt.Errorf("%s: the block is not closed", open.Where)
	}
	page.Prose = strings.Join(prose, "\n")
	return page, nil
}

// Span is code within a line or two of prose.
type Span struct {
	Where string
	Line  int
	Text  string
}

var span = regexp.MustCompile("`[^`]+`")

// Spans returns the code within prose.
func (p Page) Spans() []Span {
	var spans []Span
	line := 1
	for _, paragraph := range strings.SplitAfter(p.Prose, "\n\n") {
		for _, at := range span.FindAllStringIndex(paragraph, -1) {
			code := strings.Join(strings.Fields(strings.Trim(paragraph[at[0]:at[1]], "`")), " ")
			first := line + strings.Count(paragraph[:at[0]], "\n")
			spans = append(spans, Span{Where: fmt.Sprintf("%s:%d", p.Path, first), Line: first, Text: strings.ReplaceAll(code, `\|`, "|")})
		}
		line += strings.Count(paragraph, "\n")
	}
	return spans
}

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#* *$`)
	anchor  = regexp.MustCompile(`<a +(?:id|name)="([^"]+)"`)
)

// Links returns where the page leads to, as it is written.
func (p Page) Links() []Span {
	var links []Span
	prose := span.ReplaceAllStringFunc(p.Prose, func(code string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return '.'
		}, code)
	})
	for _, at := range link.FindAllStringSubmatchIndex(prose, -1) {
		line := 1 + strings.Count(prose[:at[0]], "\n")
		links = append(links, Span{Where: fmt.Sprintf("%s:%d", p.Path, line), Line: line, Text: prose[at[2]:at[3]]})
	}
	return links
}

// Anchors returns those that GitHub gives the headings of the page, and those that it has itself.
func (p Page) Anchors() map[string]bool {
	anchors, seen := map[string]bool{}, map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(p.Prose, -1) {
		name := slug(link.ReplaceAllStringFunc(match[1], func(l string) string { return l[1:strings.Index(l, "]")] }))
		if n := seen[name]; n > 0 {
			anchors[fmt.Sprintf("%s-%d", name, n)] = true
		} else {
			anchors[name] = true
		}
		seen[name]++
	}
	for _, match := range anchor.FindAllStringSubmatch(p.Prose, -1) {
		anchors[match[1]] = true
	}
	return anchors
}

// slug is GitHub's rule: lower case, hyphens for spaces, and of punctuation only hyphens and underscores.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, title)
}
