package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetworkload/fleetworkload/hack/docs"
)

// TestCommandsInDocs: what pages have people type is a command, and has the flags and the arguments that they give it.
func TestCommandsInDocs(t *testing.T) {
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	commands, used := 0, map[string]bool{}
	for _, page := range pages {
		for _, program := range []string{"kubectl fw", "kubectl-fw", "bin/kubectl-fw"} {
			for _, command := range page.Commands(program) {
				commands++
				used[parsed(t, command)] = true
			}
		}
		if page.Path != "docs/kubectl-fw.md" {
			continue
		}
		for _, line := range strings.Split(page.Prose, "\n") { // the table of commands leaves the program's name out
			if cell, is := strings.CutPrefix(line, "| `"); is {
				text, _, _ := strings.Cut(cell, "`")
				if name, _, _ := strings.Cut(text, " "); used[name] || name == "doctor" {
					parsed(t, docs.Command{Where: page.Path + ": " + text, Words: strings.Fields(text)})
				}
			}
		}
	}
	if commands < 80 {
		t.Errorf("looked at %d commands", commands)
	}
	for _, command := range rootCommand().Commands() {
		if !used[command.Name()] && command.Name() != "help" {
			t.Errorf("no page shows %s", command.Name())
		}
	}
}

func rootCommand() *cobra.Command {
	root := newRoot("kubectl-fw", genericiooptions.NewTestIOStreamsDiscard())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	return root
}

// parsed reads a command as cobra does before it runs it, and returns its name below the program's.
func parsed(t *testing.T, command docs.Command) string {
	t.Helper()
	words := slices.Clone(command.Words)
	for i, word := range words {
		words[i], _, _ = strings.Cut(word, "|") // one of several, such as bash|zsh
	}
	root := rootCommand()
	found, rest, err := root.Find(words)
	if err != nil {
		t.Errorf("%s: %v", command.Where, err)
		return ""
	}
	found.InitDefaultHelpFlag()
	var lacksValue *pflag.ValueRequiredError
	if err := found.ParseFlags(rest); errors.As(err, &lacksValue) && !command.Typed {
		return found.Name() // prose that names a flag
	} else if err != nil {
		t.Errorf("%s: %v", command.Where, err)
		return ""
	}
	args := found.Flags().Args()
	if found == root && len(args) > 0 {
		t.Errorf("%s: there is no command %s", command.Where, args[0])
	}
	if command.Typed && found != root {
		if err := found.ValidateArgs(args); err != nil {
			t.Errorf("%s: %v", command.Where, err)
		}
		if err := found.ValidateRequiredFlags(); err != nil {
			t.Errorf("%s: %v", command.Where, err)
		}
	}
	for found.HasParent() && found.Parent() != root {
		found = found.Parent()
	}
	return found.Name()
}

// TestInventoryInDocs: what the page shows is an inventory.
func TestInventoryInDocs(t *testing.T) {
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, page := range pages {
		for _, block := range page.Blocks {
			if block.Language != "yaml" || !strings.HasPrefix(block.Text, "# clusters.yaml, three clusters as the test fleet's") {
				continue
			}
			read++
			path := filepath.Join(t.TempDir(), "inventory.yaml")
			if err := os.WriteFile(path, []byte(block.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := loadInventory(path); err != nil {
				t.Errorf("%s: %v", block.Where, err)
			}
		}
	}
	if read != 1 {
		t.Errorf("read %d inventories", read)
	}
}
