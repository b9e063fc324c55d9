// Package chart generates the Helm chart of both providers from their manifests for clusterctl.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	yamlutil "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/archive"
)

// Name is the name of the chart.
const Name = "cluster-api-provider-openshift-agent"

const (
	// Helm does not delete an object with keepAnnotation when the release is uninstalled. clusterctl moves the
	// kinds whose CRDs have moveLabel.
	keepAnnotation, moveLabel = "helm.sh/resource-policy", "clusterctl.cluster.x-k8s.io"
	// onOpenShift is the condition of objects that only hubs on OpenShift require. A boolean value decides.
	// Without a value the API group decides: every OpenShift has the group. A hub may have only the CRDs of the
	// group. Its user sets the value to false, so that the manager does not get the right to delete Secrets.
	onOpenShift = `(ternary .Values.openshiftHub ` +
		`(.Capabilities.APIVersions.Has "config.openshift.io/v1") (kindIs "bool" .Values.openshiftHub))`
)

// Chart is the Helm chart of both providers. The hand-written files lie in config/chart. The templates of the
// objects and their default values are generated from the components for clusterctl.
type Chart struct {
	// root is the top of the checkout.
	root  string
	files map[string][]byte
	// values is the document with the default values, comments included.
	values *yamlv3.Node
	// rows are the rows for the table of the values in the README.
	rows []value
}

// Provider is a provider in the chart.
type Provider struct {
	// Folder is the folder of its manifests in config/, and of its templates in the chart.
	Folder string
	// Namespace is its namespace in the manifests.
	Namespace string
	// Values is its section in the values of the chart.
	Values string
}

// Manifests are the released manifests of a provider.
type Manifests struct {
	// ClusterWide and Namespaced install managers that watch all namespaces, or one.
	ClusterWide, Namespaced []byte
	// Extension has the objects of the runtime extension for in-place updates. It may be empty.
	Extension []byte
	// Hub and HubNamespaced have the additional rights for hubs on OpenShift.
	Hub, HubNamespaced []byte
}

// File returns the file name that Helm gives to the package of a version.
func File(version string) string {
	return Name + "-" + strings.TrimPrefix(version, "v") + ".tgz"
}

// New reads the hand-written files and sets their version.
func New(root, version string) (*Chart, error) {
	c := &Chart{root: root, files: map[string][]byte{}, values: &yamlv3.Node{}}
	source := os.DirFS(filepath.Join(root, "config", "chart"))
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		c.files[name], err = fs.ReadFile(source, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the chart: %w", err)
	}
	if err := yamlv3.Unmarshal(c.files["values.yaml"], c.values); err != nil {
		return nil, fmt.Errorf("cannot read the values of the chart: %w", err)
	}
	if c.rows, err = valuesOf(c.values.Content[0]); err != nil {
		return nil, err
	}
	versions := strings.NewReplacer("version: 0.0.0\n", "version: "+strings.TrimPrefix(version, "v")+"\n", "appVersion: dev\n",
		"appVersion: "+version+"\n")
	c.files["Chart.yaml"] = []byte(versions.Replace(string(c.files["Chart.yaml"])))
	return c, nil
}

// Add generates the templates of a provider from its manifests.
func (c *Chart) Add(p Provider, released Manifests) error {
	clusterWide, err := objectsOf(released.ClusterWide)
	if err != nil {
		return err
	}
	namespaced, err := objectsOf(released.Namespaced)
	if err != nil {
		return err
	}
	for _, o := range clusterWide {
		condition := ""
		if !contains(namespaced, o) {
			condition = "(not .Values.watchNamespace)"
		}
		if err := c.addObject(p, o, condition); err != nil {
			return err
		}
	}
	for _, o := range namespaced {
		if !contains(clusterWide, o) {
			if err := c.addObject(p, o, ".Values.watchNamespace"); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		c.addAll(p, released.Extension, ".Values."+p.Values+".inPlaceUpdates.enabled"),
		c.addAll(p, released.Hub, onOpenShift+" (not .Values.watchNamespace)"),
		c.addAll(p, released.HubNamespaced, onOpenShift+" .Values.watchNamespace"),
		c.addOptional(p),
	)
}

// addAll adds the templates of all objects of a file, with a condition.
func (c *Chart) addAll(p Provider, manifests []byte, condition string) error {
	objects, err := objectsOf(manifests)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.addObject(p, o, condition); err != nil {
			return err
		}
	}
	return nil
}

func objectsOf(manifests []byte) ([]unstructured.Unstructured, error) {
	objects, err := yamlutil.ToUnstructured(manifests)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests for the chart: %w", err)
	}
	return objects, nil
}

// contains reports whether a list has an object. Deployments differ only in the flag for the watched namespace.
func contains(objects []unstructured.Unstructured, o unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(other unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && other.GetKind() == "Deployment" || reflect.DeepEqual(other.Object, o.Object)
	})
}

// addObject adds the template of an object. The object is installed if its provider is enabled and the
// condition, if any, is true.
func (c *Chart) addObject(p Provider, o unstructured.Unstructured, condition string) error {
	o = *o.DeepCopy() // contains compares the original with other objects
	conditions := ".Values." + p.Values + ".enabled"
	if condition != "" {
		conditions = "and " + conditions + " " + condition
	}
	switch kind := o.GetKind(); {
	case kind == "Namespace":
		return nil // Helm creates the namespace of the release
	case kind == "CustomResourceDefinition":
		conditions = "and .Values.crds.install (" + conditions + ")"
		o.SetAnnotations(labels.Merge(o.GetAnnotations(), labels.Set{keepAnnotation: "keep"}))
		o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{moveLabel: ""}))
	case strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
		conditions = "and .Values.admissionPolicies.install (" + conditions + ")"
	case kind == "Deployment":
		if err := errors.Join(c.addObject(p, budgetOf(p, o), ".Values."+p.Values+".podDisruptionBudget"),
			c.parameterize(p, o.Object)); err != nil {
			return err
		}
	case kind == "PodMonitor":
		o.Object["metadata"].(map[string]any)["labels"] = expression(optional, ".Values.podMonitor.labels")
	case kind == "NetworkPolicy":
		parameterizeEgress(p, o.Object["spec"].(map[string]any))
	}
	text, err := p.template(o)
	if err != nil {
		return err
	}
	file := "templates/" + p.Folder + "/" + strings.ToLower(o.GetKind()) + ".yaml"
	c.files[file] = fmt.Appendf(c.files[file], "{{- if %s }}\n---\n%s{{- end }}\n", conditions, text)
	return nil
}

// firstLevel matches the beginning of a comment, or of a section without comment, in the default values. An
// empty line is inserted before it.
var firstLevel = regexp.MustCompile(`(?m)^([^#\n].*\n)([#a-zA-Z])`)

// Archive packs the chart as Helm does. Equal content gives equal bytes.
func (c *Chart) Archive() ([]byte, error) {
	var values bytes.Buffer
	encoder := yamlv3.NewEncoder(&values)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(c.values), encoder.Close()); err != nil {
		return nil, fmt.Errorf("cannot write the values of the chart: %w", err)
	}
	if err := c.writeReadme(); err != nil {
		return nil, err
	}
	c.files["values.yaml"] = firstLevel.ReplaceAll(values.Bytes(), []byte("$1\n$2"))
	files := map[string]archive.File{}
	for file, content := range c.files {
		files[path.Join(Name, file)] = archive.File{Content: content, Mode: 0o644}
	}
	return archive.Pack(files)
}
