package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
)

const (
	chartName = "cluster-api-provider-openshift-agent"
	// keepAnnotation has Helm leave an object where it is when the release is uninstalled; moveLabel is what clusterctl
	// gives to the kinds that it moves.
	keepAnnotation, moveLabel = "helm.sh/resource-policy", "clusterctl.cluster.x-k8s.io"
	// onOpenShift is the condition of objects that only hubs on OpenShift require. A boolean value decides. Without a
	// value the API group decides: each OpenShift has it, but so does a hub on which only the definitions of that group
	// are installed, and the user of such a hub does not grant the right to delete Secrets.
	onOpenShift = `(ternary .Values.openshiftHub (.Capabilities.APIVersions.Has "config.openshift.io/v1") (kindIs "bool" .Values.openshiftHub))`
)

// chart is the Helm chart of both providers. What is written by hand lies in config/chart; the templates of its
// objects, and the values that these have by default, are made of the components that clusterctl installs.
type chart struct {
	files map[string][]byte
	// values is the document with the default values, comments included.
	values *yamlv3.Node
}

// chartFile is the name that Helm gives to the package of a version.
func chartFile(version string) string {
	return chartName + "-" + strings.TrimPrefix(version, "v") + ".tgz"
}

// newChart reads what is written by hand, for a version.
func newChart(root, version string) (*chart, error) {
	c := &chart{files: map[string][]byte{}, values: &yamlv3.Node{}}
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
	versions := strings.NewReplacer("version: 0.0.0\n", "version: "+strings.TrimPrefix(version, "v")+"\n", "appVersion: dev\n", "appVersion: "+version+"\n")
	c.files["Chart.yaml"] = []byte(versions.Replace(string(c.files["Chart.yaml"])))
	return c, nil
}

// add adds the templates of a provider, of the files that are released for clusterctl.
func (c *chart) add(p provider, files map[string][]byte) error {
	everywhere, err := objectsOf(files[p.components+".yaml"])
	if err != nil {
		return err
	}
	inOne, err := objectsOf(files[p.components+"-namespaced.yaml"])
	if err != nil {
		return err
	}
	for _, o := range everywhere {
		condition := ""
		if !contains(inOne, o) {
			condition = "(not .Values.watchNamespace)"
		}
		if err := c.addObject(p, o, condition); err != nil {
			return err
		}
	}
	for _, o := range inOne {
		if !contains(everywhere, o) {
			if err := c.addObject(p, o, ".Values.watchNamespace"); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		c.addAll(p, files[extensionFile], ".Values."+p.values+".inPlaceUpdates.enabled"),
		c.addAll(p, files[hubFile], onOpenShift+" (not .Values.watchNamespace)"),
		c.addAll(p, files[hubFileNamespaced], onOpenShift+" .Values.watchNamespace"),
	)
}

// addAll adds the templates of the objects of a file, under a condition.
func (c *chart) addAll(p provider, manifests []byte, condition string) error {
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
		return nil, fmt.Errorf("cannot read what the chart is made of: %w", err)
	}
	return objects, nil
}

// contains reports whether an object is among others. Deployments are the same but for the flag that says which namespace is watched.
func contains(objects []unstructured.Unstructured, o unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(other unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && other.GetKind() == "Deployment" || reflect.DeepEqual(other.Object, o.Object)
	})
}

// addObject adds the template of an object that is installed under a condition, if there is one, and as long as its provider is.
func (c *chart) addObject(p provider, o unstructured.Unstructured, condition string) error {
	o = *o.DeepCopy() // others are compared with it
	conditions := ".Values." + p.values + ".enabled"
	if condition != "" {
		conditions = "and " + conditions + " " + condition
	}
	switch kind := o.GetKind(); {
	case kind == "Namespace":
		return nil // a release of Helm has one
	case kind == "CustomResourceDefinition":
		conditions = "and .Values.crds.install (" + conditions + ")"
		o.SetAnnotations(labels.Merge(o.GetAnnotations(), labels.Set{keepAnnotation: "keep"}))
		o.SetLabels(labels.Merge(o.GetLabels(), labels.Set{moveLabel: ""}))
	case strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
		conditions = "and .Values.admissionPolicies.install (" + conditions + ")"
	case kind == "Deployment":
		if err := c.parametrise(p, o.Object); err != nil {
			return err
		}
	}
	text, err := p.template(o)
	if err != nil {
		return err
	}
	file := "templates/" + p.folder + "/" + strings.ToLower(o.GetKind()) + ".yaml"
	c.files[file] = fmt.Appendf(c.files[file], "{{- if %s }}\n---\n%s{{- end }}\n", conditions, text)
	return nil
}

// firstLevel is the beginning of a comment, or of a section without one, in the default values: an empty line goes before it.
var firstLevel = regexp.MustCompile(`(?m)^([^#\n].*\n)([#a-zA-Z])`)

// archive is the chart as Helm packs charts, but the same bytes for the same content.
func (c *chart) archive() ([]byte, error) {
	var values bytes.Buffer
	encoder := yamlv3.NewEncoder(&values)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(c.values), encoder.Close()); err != nil {
		return nil, fmt.Errorf("cannot write the values of the chart: %w", err)
	}
	c.files["values.yaml"] = firstLevel.ReplaceAll(values.Bytes(), []byte("$1\n$2"))
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, file := range slices.Sorted(maps.Keys(c.files)) {
		content := c.files[file]
		header := &tar.Header{Name: path.Join(chartName, file), Mode: 0o644, Size: int64(len(content)), Format: tar.FormatUSTAR}
		err := archive.WriteHeader(header)
		if err == nil {
			_, err = archive.Write(content)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot pack the chart: %w", err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("cannot pack the chart: %w", err)
	}
	return packed.Bytes(), nil
}
