package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/internal/bulk"
)

// reportFile is where a report is written to; nil when none is wanted.
type reportFile struct {
	path   string
	encode func(any) ([]byte, error)
}

// reportFileAt tells early when no report could be written: what it is about may take hours.
func reportFileAt(path string) (*reportFile, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no report is wanted
	}
	file := &reportFile{path: path}
	switch filepath.Ext(path) {
	case ".json":
		file.encode = func(v any) ([]byte, error) {
			raw, err := json.MarshalIndent(v, "", "  ")
			return append(raw, '\n'), err
		}
	case ".yaml", ".yml":
		file.encode = yaml.Marshal
	default:
		return nil, fmt.Errorf("--report %q: choose a name that ends in .yaml or .json", path)
	}
	probe, err := file.beside()
	if err != nil {
		return nil, err
	}
	return file, os.Remove(probe.Name())
}

// beside is a new file in the report's directory, from which it is renamed when it is whole.
func (f *reportFile) beside() (*os.File, error) {
	file, err := os.CreateTemp(filepath.Dir(f.path), "."+filepath.Base(f.path)+".*")
	if err != nil {
		return nil, fmt.Errorf("--report %q: %w", f.path, err)
	}
	return file, nil
}

// write replaces the file by the whole report, or leaves it as it is.
func (f *reportFile) write(report bulk.Report, out io.Writer) error {
	if f == nil {
		return nil
	}
	raw, err := f.encode(report)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	file, err := f.beside()
	if err != nil {
		return err
	}
	if err := finishReport(file, raw, f.path); err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("write the report: %w", err)
	}
	fmt.Fprintln(out, "report: "+f.path)
	return nil
}

func finishReport(file *os.File, raw []byte, path string) error {
	_, err := file.Write(raw)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
