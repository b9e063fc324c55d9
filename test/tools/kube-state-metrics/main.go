// Command kube-state-metrics prints the metrics of kube-state-metrics for objects under a configuration for custom
// resources. It uses the library of kube-state-metrics, without an API server. The first argument is the file of the
// configuration. The other arguments are files with one object each.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
	generator "k8s.io/kube-state-metrics/v2/pkg/metric_generator"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

func main() {
	if err := run(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, config string, objects []string) error {
	families, err := load(config)
	if err != nil {
		return err
	}
	for _, file := range objects {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, family := range families[object.GroupVersionKind()] {
			if _, err := out.Write(family.Generate(object).ByteSlice()); err != nil {
				return err
			}
		}
	}
	return nil
}

// load compiles the configuration as kube-state-metrics does after it has found the kinds in the cluster. An unknown
// field is an error.
func load(file string) (map[schema.GroupVersionKind][]generator.FamilyGenerator, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	decoder := goyaml.NewDecoder(opened)
	decoder.KnownFields(true)
	// What kube-state-metrics reads is the spec; it does not check the kind.
	var config struct {
		Kind string                          `yaml:"kind"`
		Spec customresourcestate.MetricsSpec `yaml:"spec"`
	}
	if err := decoder.Decode(&config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	families := map[schema.GroupVersionKind][]generator.FamilyGenerator{}
	for _, resource := range config.Spec.Resources {
		for i := range resource.Metrics {
			each := &resource.Metrics[i].Each
			each.Type = metric.Type(strings.ToLower(string(each.Type)))
		}
		compiled, err := customresourcestate.NewCustomResourceMetrics(resource)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", resource.GroupVersionKind, err)
		}
		families[schema.GroupVersionKind(resource.GroupVersionKind)] = compiled.MetricFamilyGenerators()
	}
	return families, nil
}
