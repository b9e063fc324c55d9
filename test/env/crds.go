package env

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	assistedModule  = "github.com/openshift/assisted-service/api"
	hiveModule      = "github.com/openshift/hive/apis"
	openshiftModule = "github.com/openshift/api"
)

// generatedCRDs are those whose modules hold only Go types.
var generatedCRDs = []string{
	"agent-install.openshift.io_agentclassifications.yaml",
	"agent-install.openshift.io_agents.yaml",
	"agent-install.openshift.io_agentserviceconfigs.yaml",
	"agent-install.openshift.io_infraenvs.yaml",
	"agent-install.openshift.io_nmstateconfigs.yaml",
	"extensions.hive.openshift.io_agentclusterinstalls.yaml",
	"hive.openshift.io_clusterdeployments.yaml",
	"hive.openshift.io_clusterimagesets.yaml",
}

// workloadCRDs are the kinds of an OpenShift cluster that an installation is judged by, in the openshift/api module.
var workloadCRDs = []string{
	"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
	"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
	"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigpools-Default.crd.yaml",
}

// foreignCRDs returns the CRDs of the services that do not run here: assisted-service and hive, the Bare Metal Operator,
// and Metal3's IP address manager (CAPM3 watches its kinds).
func (t *toolbox) foreignCRDs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	dir, err := t.generate(ctx)
	if err != nil {
		return nil, err
	}
	crds, err := readManifests(dir, generatedCRDs)
	if err != nil {
		return nil, err
	}
	for _, source := range []struct{ tools, module, folder string }{
		{"ipam", ipamModule, "config/crd"},
		{"baremetal-operator", bmoModule, "config/base/crds"},
	} {
		manifests, err := t.kustomizeModule(ctx, source.tools, source.module, source.folder)
		if err != nil {
			return nil, err
		}
		objects, err := decode(manifests)
		if err != nil {
			return nil, err
		}
		crds = append(crds, objects...)
	}
	withoutConversion(crds)
	return crds, nil
}

// generate runs controller-gen over the Go types of assisted-service and hive, in the versions that the main module
// requires, and returns the folder with the CRDs. The result is kept for each pair of versions.
func (t *toolbox) generate(ctx context.Context) (string, error) {
	goMod := filepath.Join(t.root, "go.mod")
	assisted, err := moduleVersion(goMod, assistedModule)
	if err != nil {
		return "", err
	}
	hive, err := moduleVersion(goMod, hiveModule)
	if err != nil {
		return "", err
	}
	program, err := t.program(ctx, controllerGenBuild)
	if err != nil {
		return "", err
	}
	unlock, err := t.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(t.root, ".tools", "crds-"+assisted+"-"+hive)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	temporary := dir + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return "", fmt.Errorf("cannot remove a half generated folder: %w", err)
	}
	// allowDangerousTypes: AgentServiceConfig and hive have fields of type float.
	_, err = run(ctx, t.root, program, "crd:crdVersions=v1,allowDangerousTypes=true",
		"paths="+assistedModule+"/v1beta1;"+assistedModule+"/hiveextension/v1beta1;"+hiveModule+"/hive/v1",
		"output:crd:dir="+temporary)
	if err != nil {
		return "", fmt.Errorf("cannot generate the CRDs of assisted-service and hive: %w", err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return "", fmt.Errorf("cannot put the generated CRDs in their place: %w", err)
	}
	t.sayf("generated the CRDs of assisted-service and hive")
	return dir, nil
}

// kustomizeModule renders a kustomization that lies in a module required below test/tools.
func (t *toolbox) kustomizeModule(ctx context.Context, tools, module, folder string) ([]byte, error) {
	dir, err := t.moduleDir(ctx, filepath.Join("test", "tools", tools), module)
	if err != nil {
		return nil, err
	}
	return t.kustomize(ctx, filepath.Join(dir, folder))
}

// openshiftCRDs returns the CRDs of a workload cluster.
func (t *toolbox) openshiftCRDs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	dir, err := t.moduleDir(ctx, ".", openshiftModule)
	if err != nil {
		return nil, err
	}
	return readManifests(dir, workloadCRDs)
}

func readManifests(dir string, files []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("cannot read a manifest: %w", err)
		}
		more, err := decode(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func toBase64(data []byte) string {
	return base64.StdEncoding.EncodeToString(data)
}
