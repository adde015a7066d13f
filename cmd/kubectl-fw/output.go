package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// formatWide is a text with all that is known.
const formatWide = "wide"

// output is -o of a command whose result is no object of an API server: it has kubectl's formats all the same.
type output struct {
	flags *genericclioptions.PrintFlags
	// wide tells whether the command has that format.
	wide    bool
	printer printers.ResourcePrinter
}

func newOutput(wide bool) *output {
	return &output{flags: genericclioptions.NewPrintFlags(""), wide: wide}
}

// addFlags registers -o and --template. about says what json and yaml print.
func (o *output) addFlags(cmd *cobra.Command, about string) {
	o.flags.AddFlags(cmd)
	cmd.Flag("output").Usage = fmt.Sprintf("%s. One of: (%s).", about, strings.Join(o.formats(), ", "))
	cmd.Flag("show-managed-fields").Hidden = true // a result has none
	completeOutput(cmd, o.formats()...)
}

func (o *output) formats() []string {
	if o.wide {
		return append([]string{formatWide}, o.flags.AllowedFormats()...)
	}
	return o.flags.AllowedFormats()
}

func (o *output) format() string { return *o.flags.OutputFormat }

// isWide tells whether a text with all that is known is asked for.
func (o *output) isWide() bool { return o.wide && o.format() == formatWide }

// isText tells whether a text for people is asked for.
func (o *output) isText() bool {
	template := o.flags.TemplatePrinterFlags.TemplateArgument
	return o.isWide() || o.format() == "" && (template == nil || *template == "")
}

// sheet is where a text is written: on a terminal it has an edge, unless all that is known is asked for.
func (o *output) sheet(out io.Writer) io.Writer {
	if o.isWide() {
		return out
	}
	return sheetOn(out)
}

// check refuses formats that there are not, and templates that cannot be read.
func (o *output) check() error {
	if o.isText() || o.printer != nil {
		return nil
	}
	printer, err := o.flags.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return fmt.Errorf("--output %q: choose %s, or leave it out for a text", o.format(), strings.Join(o.formats(), ", "))
	} else if err != nil {
		return fmt.Errorf("--output %s: %w", o.format(), err)
	}
	o.printer = printer
	return nil
}

// named is an object that a result is about: what -o name prints.
type named struct {
	kind schema.GroupVersionKind
	name string
}

func namedFleetWorkload(name string) named {
	return named{v1alpha1.GroupVersion.WithKind("FleetWorkload"), name}
}

// write prints a result in a format that is no text.
func (o *output) write(out io.Writer, result any, about ...named) error {
	if err := o.check(); err != nil {
		return err
	}
	raw, err := encoded(result)
	if err != nil {
		return err
	}
	switch o.format() {
	case "json":
		_, err := out.Write(raw)
		return err
	case "yaml", "kyaml":
		return o.printer.PrintObj(&runtime.Unknown{Raw: raw}, out)
	case "name":
		for _, n := range about {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(n.kind)
			object.SetName(n.name)
			if err := o.printer.PrintObj(object, out); err != nil {
				return err
			}
		}
		return nil
	default:
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &object.Object); err != nil {
			return fmt.Errorf("read the result for a template: %w", err)
		}
		return o.printer.PrintObj(object, out)
	}
}

// encoded is JSON for people as well: indented, and with signs such as > as they are.
func encoded(result any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return b.Bytes(), nil
}

// orEmpty is a list that is printed as [] and not as null when it has nothing.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
