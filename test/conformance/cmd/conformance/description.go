package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
)

// description describes the providers. Its fields are those of [conformance.Provider] with the same names. Paths
// are relative to the folder of the file.
type description struct {
	Bootstrap    component `json:"bootstrap"`
	ControlPlane component `json:"controlPlane"`
	// Samples are the files of clusters that the hub is able to install, by name. ${NAMESPACE} in a file stands for
	// the namespace, which is different for each cluster. Full needs capacity for one more control-plane Machine.
	Samples map[conformance.Sample]string `json:"samples"`
	// Before are the files with the CRDs of the former release.
	Before []string `json:"before"`
	// OwnerGraph is a file with the owner graph of the sample Full.
	OwnerGraph string `json:"ownerGraph"`

	InstallTimeout   metav1.Duration           `json:"installTimeout"`
	Installed        string                    `json:"installed"`
	Kinds            []schema.GroupVersionKind `json:"kinds"`
	Registration     schema.GroupVersionKind   `json:"registration"`
	InfraMachine     schema.GroupVersionKind   `json:"infraMachine"`
	Accepted         []string                  `json:"accepted"`
	Variables        map[string]string         `json:"variables"`
	TaintsTaken      bool                      `json:"taintsTaken"`
	DeletionOverride map[string]string         `json:"deletionOverride"`
	Exempt           map[string]string         `json:"exempt"`

	dir string
}

// component describes one provider.
type component struct {
	Name string `json:"name"`
	// Release is a folder with the files of a release: <type>-components.yaml, metadata.yaml, cluster templates and
	// ClusterClasses. Both providers may have the same folder.
	Release string `json:"release"`
	// Kind is the kind of the provider. The kind of its template has the suffix Template.
	Kind    schema.GroupVersionKind `json:"kind"`
	Example map[string]any          `json:"example"`
	Change  map[string]any          `json:"change"`
}

// The names of the types of providers for clusterctl.
const (
	bootstrapType    = "bootstrap"
	controlPlaneType = "control-plane"
)

// readDescription reads and checks a description.
func readDescription(path string) (*description, error) {
	if path == "" {
		return nil, errors.New("flag -provider is missing: name the file that describes the providers")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the description of the providers: %w", err)
	}
	d := &description{dir: filepath.Dir(path)}
	if err := yaml.UnmarshalStrict(content, d); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("%s is invalid: %w", path, err)
	}
	return d, nil
}

func (d *description) validate() error {
	var all []error
	for name, c := range d.components() {
		if c.Name == "" || c.Release == "" || c.Kind.Group == "" || c.Kind.Version == "" || c.Kind.Kind == "" {
			all = append(all, fmt.Errorf("the %s provider needs name, release, and kind with group, version and kind", name))
			continue
		}
		for _, file := range []string{name + "-components.yaml", "metadata.yaml"} {
			if _, err := os.Stat(filepath.Join(d.path(c.Release), file)); err != nil {
				all = append(all, fmt.Errorf("the release of the %s provider is incomplete: %w", name, err))
			}
		}
	}
	known := []conformance.Sample{conformance.Small, conformance.Full, conformance.Topology}
	for sample := range d.Samples {
		if !slices.Contains(known, sample) {
			all = append(all, fmt.Errorf("unknown sample %s: use some of %v", sample, known))
		}
	}
	if len(d.Samples) > 0 && d.Installed == "" {
		all = append(all, errors.New("installed is missing: name the condition of an installed control plane"))
	}
	return errors.Join(all...)
}

func (d *description) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.dir, name)
}

// components returns both providers by their types.
func (d *description) components() map[string]*component {
	return map[string]*component{bootstrapType: &d.Bootstrap, controlPlaneType: &d.ControlPlane}
}

// noMove is the reason why moves do not apply: managers with --namespace and --watch-filter would have to run on a
// second hub.
const noMove = "moves need a second hub, which the command does not have"

// provider returns the providers for the suite.
func (d *description) provider() (*conformance.Provider, error) {
	p := &conformance.Provider{
		Bootstrap: d.Bootstrap.forSuite(d, bootstrapType), ControlPlane: d.ControlPlane.forSuite(d, controlPlaneType),
		Kinds: d.Kinds, Registration: d.Registration, InfraMachine: d.InfraMachine, Installed: d.Installed,
		Release: d.copyRelease, Before: d.formerCRDs, Accepted: d.Accepted, Variables: d.Variables,
		TaintsTaken: d.TaintsTaken, DeletionOverride: d.DeletionOverride,
		Samples: slices.Collect(maps.Keys(d.Samples)), InstallTimeout: d.InstallTimeout.Duration,
		Exempt: map[string]string{"C18": noMove},
	}
	maps.Copy(p.Exempt, d.Exempt)
	var err error
	if p.Metadata, err = os.ReadFile(filepath.Join(d.path(d.Bootstrap.Release), "metadata.yaml")); err != nil {
		return nil, fmt.Errorf("cannot read the metadata of the release: %w", err)
	}
	if p.Templates, err = d.templates(); err != nil {
		return nil, err
	}
	if d.OwnerGraph != "" {
		graph, err := os.ReadFile(d.path(d.OwnerGraph))
		if err != nil {
			return nil, fmt.Errorf("cannot read the owner graph: %w", err)
		}
		p.OwnerGraph = string(graph)
	}
	return p, nil
}

func (c *component) forSuite(d *description, name string) conformance.Component {
	template := c.Kind
	template.Kind += "Template"
	return conformance.Component{
		Name: c.Name, Kind: c.Kind, Template: template, Example: c.Example, Change: c.Change,
		Manifests: func(context.Context) ([]byte, error) {
			return os.ReadFile(filepath.Join(d.path(c.Release), name+"-components.yaml"))
		},
	}
}

// templates returns the cluster templates and ClusterClasses of both releases.
func (d *description) templates() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, c := range d.components() {
		for _, pattern := range []string{"cluster-template*.yaml", "clusterclass-*.yaml"} {
			files, err := filepath.Glob(filepath.Join(d.path(c.Release), pattern))
			if err != nil {
				return nil, fmt.Errorf("cannot find the templates of the release: %w", err)
			}
			for _, file := range files {
				if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
					return nil, fmt.Errorf("cannot read a template of the release: %w", err)
				}
			}
		}
	}
	return all, nil
}

// copyRelease copies both releases to a local repository of clusterctl.
func (d *description) copyRelease(_ context.Context, version, dir string) error {
	for name, c := range d.components() {
		folder := filepath.Join(dir, name+"-"+c.Name, version)
		if err := os.CopyFS(folder, os.DirFS(d.path(c.Release))); err != nil {
			return fmt.Errorf("cannot copy the release of the %s provider: %w", name, err)
		}
	}
	return nil
}

// formerCRDs reads the CRDs of the former release.
func (d *description) formerCRDs(context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range d.Before {
		objects, err := readObjects(d.path(file), conformance.WithDefaults)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if o.GetKind() != crdKind {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, crd); err != nil {
				return nil, fmt.Errorf("cannot read CRD %s in %s: %w", o.GetName(), file, err)
			}
			crds = append(crds, crd)
		}
	}
	return crds, nil
}
