// Command conformance runs the conformance suite on the bootstrap and the control plane provider that a file
// describes. docs/conformance.md explains the file.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
)

// suiteTimeout ends a run without progress. The default of Ginkgo is an hour, which is less than some providers need
// for one installation.
const suiteTimeout = 24 * time.Hour

func main() {
	passed, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if !passed {
		os.Exit(1)
	}
}

// run runs the suite, and reports whether all rules that apply have passed.
func run(args []string) (passed bool, err error) {
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = suiteTimeout
	// A set of its own: controller-runtime defines -kubeconfig in the common one.
	flags := flag.NewFlagSet("conformance", flag.ExitOnError)
	file := flags.String("provider", "", "file that describes the providers")
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of an administrator of a hub on which Cluster API and the providers run")
	core := flags.String("core", "", "manifests of Cluster API core, such as core-components.yaml. The command installs them and the "+
		"CRDs of the providers on an API server that it starts from the programs in KUBEBUILDER_ASSETS. No controller runs there: "+
		"only the rules on manifests and releases apply")
	clusterctl := flags.String("clusterctl", "", "path of clusterctl; without it the rules on releases do not apply")
	report := flags.String("report", "conformance.md", "file to which the table of rules is written")
	flags.Func("focus", "run only the rules that match a regular expression, such as 'B5 '", func(expression string) error {
		suite.FocusStrings = append(suite.FocusStrings, expression)
		return nil
	})
	flags.BoolVar(&reporter.Verbose, "v", false, "print each rule")
	_ = flags.Parse(args) // exits
	d, err := readDescription(*file)
	if err != nil {
		return false, err
	}
	h, err := newHub(d, *kubeconfig, *core)
	if err != nil {
		return false, err
	}
	p, err := d.provider()
	if err != nil {
		return false, err
	}
	p.Clusterctl, p.Report, p.Start = *clusterctl, *report, h.start
	if *core != "" {
		p.Samples = nil
	}
	RegisterFailHandler(Fail)
	conformance.Specs(p)
	passed = RunSpecs(ignored{}, "Conformance of "+d.Bootstrap.Name+" and "+d.ControlPlane.Name, suite, reporter)
	fmt.Fprintf(os.Stdout, "The table of rules: %s\n", *report)
	return passed, nil
}

// ignored receives failures of Ginkgo, which RunSpecs returns as well.
type ignored struct{}

// Fail does nothing.
func (ignored) Fail() {}
