package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// served is a served version of a kind, validated with the code of the API server.
type served struct {
	structural *schema.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
}

// schemas are the served versions of all kinds in our manifests.
type schemas map[k8sschema.GroupVersionKind]served

// ourCRDs are the folders of our own CRDs.
var ourCRDs = []string{"../../config/bootstrap/crd/bases", "../../config/controlplane/crd/bases"}

// loadSchemas reads our CRDs and those of Cluster API, CAPM3 and the Bare Metal Operator, from the Go modules
// of the tested versions. It also reads the CRDs of the infrastructure provider in test/plainmetal, the example
// of the documents.
var loadSchemas = sync.OnceValues(func() (schemas, error) {
	core, err := moduleDir("../..", "sigs.k8s.io/cluster-api")
	if err != nil {
		return nil, err
	}
	metal3, err := moduleDir("../tools/capm3", "github.com/metal3-io/cluster-api-provider-metal3")
	if err != nil {
		return nil, err
	}
	operator, err := moduleDir("../tools/baremetal-operator", "github.com/metal3-io/baremetal-operator")
	if err != nil {
		return nil, err
	}
	all := schemas{}
	for _, dir := range append(slices.Clone(ourCRDs), filepath.Join(core, "core/config/crd/bases"),
		filepath.Join(metal3, "config/crd/bases"), filepath.Join(operator, "config/base/crds/bases"), "../plainmetal/crd") {
		crds, err := readCRDs(dir)
		if err != nil {
			return nil, err
		}
		for _, crd := range crds {
			if err := all.add(crd); err != nil {
				return nil, fmt.Errorf("%s: %w", crd.Name, err)
			}
		}
	}
	return all, nil
})

func (s schemas) add(crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		var internal apiextensions.CustomResourceValidation
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema,
			&internal, nil); err != nil {
			return err
		}
		structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		openapi, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		gvk := k8sschema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		s[gvk] = served{structural: structural, openapi: openapi, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	return nil
}

// admit validates an object like the API server: on create, or on update of old. It returns the violations.
func (s schemas) admit(ctx context.Context, object, old map[string]any) error {
	u := unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	version, known := s[u.GroupVersionKind()]
	if !known {
		return fmt.Errorf("unknown kind %s", u.GroupVersionKind())
	}
	if u.GetName() == "" {
		return errors.New("metadata.name is missing")
	}
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(u.Object), version.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown fields: %s", strings.Join(unknown, ", "))
	}
	defaulting.Default(u.Object, version.structural)
	errs := validation.ValidateCustomResource(nil, u.Object, version.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, version.structural, u.Object)...)
	if version.rules != nil {
		var oldObject any // an untyped nil means create
		if old != nil {
			oldObject = runtime.DeepCopyJSON(old)
		}
		broken, _ := version.rules.Validate(ctx, field.NewPath(""), version.structural, u.Object, oldObject, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs.ToAggregate()
}

func mustLoadSchemas(t *testing.T) schemas {
	t.Helper()
	all, err := loadSchemas()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return all
}

// readCRDs reads every CRD in a folder.
func readCRDs(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("no CRDs in %s: %w", dir, fs.ErrNotExist))
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// readManifests reads the objects of a YAML stream.
func readManifests(r io.Reader) ([]map[string]any, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(r, 4096)
	var objects []map[string]any
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" { // a document of comments only
			continue
		}
		var object map[string]any
		if err := utiljson.Unmarshal(raw.Raw, &object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// moduleDir returns the folder with the sources of a module that the go.mod in dir requires.
func moduleDir(dir, module string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = dir
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot find module %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return "", fmt.Errorf("cannot read where module %s is: %w", module, err)
	}
	return found.Dir, nil
}

// merge returns base with a patch: maps are merged, null removes a field, any other value replaces it.
func merge(base, patch map[string]any) map[string]any {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			below, _ := merged[key].(map[string]any)
			merged[key] = merge(below, value)
		default:
			merged[key] = value
		}
	}
	return merged
}

// object reads one object, or a part of one, from YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	objects, err := readManifests(strings.NewReader(text))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), text)
	if len(objects) == 0 {
		return map[string]any{}
	}
	return objects[0]
}
