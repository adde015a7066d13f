// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	root       = "../.."
	repository = "https://github.com/fleetworkload/fleetworkload/"
)

func read(t *testing.T) []Page {
	t.Helper()
	pages, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestLinks: what a page leads to is there, with its heading.
func TestLinks(t *testing.T) {
	pages, links := read(t), 0
	elsewhere := map[string]string{}
	anchors := map[string]map[string]bool{}
	for _, page := range pages {
		anchors[page.Path] = page.Anchors()
	}
	for _, page := range pages {
		for _, link := range page.Links() {
			target, fragment, _ := strings.Cut(inRepository(link.Text), "#")
			switch {
			case strings.Contains(target, "://"):
				if other := elsewhere[strings.TrimSuffix(target, "/")]; !strings.HasPrefix(target, "https://") || other != "" && other != target {
					t.Errorf("%s leads to %s: want https, and one spelling of an address%s", link.Where, link.Text, strings.TrimSuffix(", such as "+other, ", such as "))
				}
				elsewhere[strings.TrimSuffix(target, "/")] = target
				continue
			case strings.HasPrefix(target, "/"):
				target = target[1:]
			case target == "":
				target = page.Path
			default:
				target = path.Join(path.Dir(page.Path), target)
			}
			links++
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s leads to %s, which is not there", link.Where, link.Text)
			} else if fragment != "" && !anchors[target][fragment] {
				t.Errorf("%s leads to %s, and %s has no such heading", link.Where, link.Text, target)
			}
		}
	}
	if links < 100 {
		t.Errorf("looked at %d links", links)
	}
}

// inRepository makes a path of the address of a file on the main branch.
func inRepository(link string) string {
	for _, view := range []string{"blob", "tree"} {
		if file, is := strings.CutPrefix(link, repository+view+"/main"); is {
			return file
		}
	}
	return link
}

// TestEveryPageIsListed: a reader finds each page from the README.
func TestEveryPageIsListed(t *testing.T) {
	listed := map[string]bool{"README.md": true}
	pages := read(t)
	for _, page := range pages {
		if page.Path == "README.md" {
			for _, link := range page.Links() {
				listed[link.Text] = true
			}
		}
	}
	for _, page := range pages {
		if !listed[page.Path] {
			t.Errorf("README.md does not lead to %s", page.Path)
		}
	}
}

// docsInCode are addresses of pages in messages, manifests and comments.
var docsInCode = regexp.MustCompile(`\bdocs/([a-z-]+\.md)(#[a-z0-9_-]+)?`)

// TestCodeNamesPagesThatAreThere looks at all that is not a page.
func TestCodeNamesPagesThatAreThere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	for _, page := range read(t) {
		anchors[path.Base(page.Path)] = page.Anchors()
	}
	found := 0
	each(t, func(file, text string) {
		if strings.HasPrefix(file, "hack/docs/") {
			return
		}
		for _, match := range docsInCode.FindAllStringSubmatch(text, -1) {
			found++
			page, there := anchors[match[1]]
			if !there || match[2] != "" && !page[match[2][1:]] {
				t.Errorf("%s names %s, which is not there", file, match[0])
			}
		}
	})
	if found < 20 {
		t.Errorf("looked at %d names", found)
	}
}

// each calls visit with the text of every source file of the repository.
func each(t *testing.T, visit func(file, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name := entry.Name(); file != root && (name[0] == '.' || name == "bin" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular(), filepath.Ext(file) != ".go" && filepath.Ext(file) != ".yaml" && filepath.Ext(file) != ".txt":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		visit(filepath.ToSlash(relative), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSlugs(t *testing.T) {
	for title, want := range map[string]string{
		"Law 4: unknown is not zero, stale is not healthy": "law-4-unknown-is-not-zero-stale-is-not-healthy",
		"`--dry-run`":           "--dry-run",
		"What `a_b` is, in 3.5": "what-a_b-is-in-35",
	} {
		if got := slug(title); got != want {
			t.Errorf("slug(%q) = %q, want %q", title, got, want)
		}
	}
	page, err := parse("a.md", "# One\n## One\n```\n# No heading\n```\n## [Two](b.md) and `three`\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "one-1", "two-and-three"} {
		if anchors := page.Anchors(); !anchors[want] || len(anchors) != 3 {
			t.Errorf("no %s in %v", want, anchors)
		}
	}
}
