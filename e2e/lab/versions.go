// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// choices are the modules of which the environment may choose another version than the one of components/: KARMADA=v1.16.0.
var choices = []struct{ env, module string }{
	{"KARMADA", karmadaModule},
	{"OCM", ocmModule},
	{"KRUISE", kruiseModule},
	{"KUBERNETES", kubernetesModule},
}

var exactVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// chosenVersions are the versions that the environment chooses, by module.
func chosenVersions() (map[string]string, error) {
	var chosen map[string]string
	for _, c := range choices {
		version := os.Getenv(c.env)
		if version == "" {
			continue
		}
		if !exactVersion.MatchString(version) {
			return nil, fmt.Errorf("%s=%s: want an exact version, such as v1.16.0", c.env, version)
		}
		if chosen == nil {
			chosen = map[string]string{}
		}
		chosen[c.module] = version
	}
	return chosen, nil
}

// agreed are the versions that a fleet is made with. A fleet that exists keeps its own: other ones are refused.
func (s *state) agreed(chosen map[string]string) (map[string]string, error) {
	if len(s.Members) == 0 || len(chosen) > 0 && maps.Equal(chosen, s.Versions) {
		return chosen, nil
	}
	if len(chosen) > 0 {
		return nil, fmt.Errorf("the fleet was made with %s, not with %s: take it down first", written(s.Versions), written(chosen))
	}
	return s.Versions, nil
}

// written are versions as somebody has chosen them.
func written(versions map[string]string) string {
	var words []string
	for _, c := range choices {
		if version, ok := versions[c.module]; ok {
			words = append(words, c.env+"="+version)
		}
	}
	if words == nil {
		return "the usual versions"
	}
	return strings.Join(words, " ")
}

// kubernetes is the version of the API servers.
func (s *state) kubernetes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version, ok := s.Versions[kubernetesModule]; ok {
		return version
	}
	return kubernetesVersion
}

// versionFlags must be linked in: clients cannot parse the version of a bare build.
func versionFlags(version string) string {
	minor := strings.Split(version, ".")[1]
	return "-X k8s.io/component-base/version.gitVersion=" + version +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=" + minor +
		" -X k8s.io/client-go/pkg/version.gitVersion=" + version
}

// chosen is the binary as it is built: in a module of its own version, if one was chosen.
func (b *builder) chosen(bin binary) binary {
	for module, version := range b.versions {
		if !inModule(bin.pkg, module) {
			continue
		}
		bin.family = familyOf(module, version)
		if module == kubernetesModule {
			bin.ldflags = versionFlags(version)
		}
	}
	return bin
}

func inModule(pkg, module string) bool { return strings.HasPrefix(pkg+"/", module+"/") }

// familyOf names the module that a chosen version is built in.
func familyOf(module, version string) string { return filepath.Base(module) + "@" + version }

// provideChosen makes a module in the cache for each chosen version. It requires what that version's own go.mod does, and replaces what
// that replaces, so that a component is built of what it was released with.
func (b *builder) provideChosen(ctx context.Context) error {
	for _, module := range slices.Sorted(maps.Keys(b.versions)) {
		dir := b.familyDir(familyOf(module, b.versions[module]))
		if err := b.provideModule(ctx, dir, module, b.versions[module]); err != nil {
			return fmt.Errorf("prepare %s %s: %w", module, b.versions[module], err)
		}
	}
	return nil
}

func (b *builder) provideModule(ctx context.Context, dir, module, version string) error {
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	complete := filepath.Join(dir, "complete")
	if exists(complete) {
		return nil
	}
	fmt.Fprintf(b.out, "preparing %s %s\n", module, version)
	source, err := download(ctx, dir, module+"@"+version)
	if err != nil {
		return err
	}
	text, err := moduleFile(ctx, source, module, version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		return err
	}
	// The checksum database does not know all that these modules need. Their own go.sum does, and is itself verified.
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644); err != nil {
		return err
	}
	if _, err := goTool(ctx, dir, nil, "mod", "tidy"); err != nil {
		return err
	}
	return os.WriteFile(complete, nil, 0o644)
}

// download returns the folder of a module in the module cache. It leaves an empty module in dir: what a broken off try may have left there
// would be looked at.
func download(ctx context.Context, dir, module string) (string, error) {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module lab\n"), 0o644); err != nil {
		return "", err
	}
	if _, err := goTool(ctx, dir, nil, "mod", "download", module); err != nil {
		return "", err
	}
	out, err := goTool(ctx, dir, nil, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var got struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		return "", fmt.Errorf("find %s: %w", module, err)
	}
	return got.Dir, nil
}

// moduleFile is the go.mod of a module that builds the programs of another one, whose source is given. Folders of the source that take
// the place of modules are released as modules too, at v0 instead of v1: those of Kubernetes.
func moduleFile(ctx context.Context, source, module, version string) (string, error) {
	out, err := goTool(ctx, source, nil, "mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var file struct {
		Go      string
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		return "", fmt.Errorf("read the go.mod of %s: %w", module, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "module lab\n\ngo %s\n\nrequire %s %s\n", file.Go, module, version)
	for _, r := range file.Replace {
		if strings.HasPrefix(r.New.Path, ".") {
			r.New.Path, r.New.Version = r.Old.Path, "v0"+strings.TrimPrefix(version, "v1")
		}
		fmt.Fprintf(&text, "\nreplace %s => %s %s\n", strings.TrimSpace(r.Old.Path+" "+r.Old.Version), r.New.Path, r.New.Version)
	}
	for _, bin := range binaries {
		if inModule(bin.pkg, module) {
			fmt.Fprintf(&text, "\ntool %s\n", bin.pkg)
		}
	}
	return text.String(), nil
}
