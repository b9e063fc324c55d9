package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// outputVersion is the version of the objects that the commands write with -o.
const outputVersion = "kubectl.openshift-agent/v1alpha1"

// output writes objects in the format of the flag -o.
type output struct{ flags *genericclioptions.PrintFlags }

// newOutput adds the flags of the output to a command.
func newOutput(cmd *cobra.Command) output {
	flags := genericclioptions.NewPrintFlags("")
	flags.NamePrintFlags = nil
	flags.AddFlags(cmd)
	_ = cmd.Flags().MarkHidden("show-managed-fields") // the objects have none
	return output{flags: flags}
}

// isText reports whether no format is requested.
func (o output) isText() bool {
	return *o.flags.OutputFormat == "" && *o.flags.TemplatePrinterFlags.TemplateArgument == ""
}

// write writes a value as an object of a kind.
func (o output) write(out io.Writer, kind string, value any) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", kind, err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &object.Object); err != nil {
		return fmt.Errorf("cannot write %s: %w", kind, err)
	}
	object.SetAPIVersion(outputVersion)
	object.SetKind(kind)
	return printer.PrintObj(object, out)
}
