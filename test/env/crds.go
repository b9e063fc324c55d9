package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	ipamModule      = "github.com/metal3-io/ip-address-manager"
	bmoModule       = "github.com/metal3-io/baremetal-operator"
	openshiftModule = "github.com/openshift/api"
)

// generatedCRDs are the CRDs of assisted-service and Hive, whose modules contain only Go types.
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

// workloadCRDs are the OpenShift kinds that determine the state of an installation, in the openshift/api
// module.
var workloadCRDs = []string{
	"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
	// The variant with accepted risks, which the version operator refuses unless a test turns its feature gate on. The
	// default one would drop them silently.
	"config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-TechPreviewNoUpgrade.crd.yaml",
	// the variant with the topology of two nodes
	"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-TechPreviewNoUpgrade.crd.yaml",
	"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigpools-Default.crd.yaml",
	"machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_machineconfigs.crd.yaml",
}

// foreignCRDs returns the CRDs of services that do not run here: assisted-service, Hive, the Bare Metal
// Operator and Metal3's IP address manager. CAPM3 watches the kinds of the latter. A running Bare Metal
// Operator installs its own CRDs.
func (e *Env) foreignCRDs(ctx context.Context, operatorRuns bool) ([]*unstructured.Unstructured, error) {
	dir, err := e.components.GenerateCRDs(ctx)
	if err != nil {
		return nil, err
	}
	crds, err := readManifests(dir, generatedCRDs)
	if err != nil {
		return nil, err
	}
	for _, source := range []struct {
		tools, module, folder string
		leave                 bool
	}{
		{tools: "ipam", module: ipamModule, folder: "config/crd"},
		{tools: "baremetal-operator", module: bmoModule, folder: "config/base/crds", leave: operatorRuns},
	} {
		if source.leave {
			continue
		}
		manifests, err := e.components.KustomizeModule(ctx, source.tools, source.module, source.folder)
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

// openshiftCRDs returns CRDs of the openshift/api module.
func (e *Env) openshiftCRDs(ctx context.Context, files []string) ([]*unstructured.Unstructured, error) {
	dir, err := e.components.ModuleDir(ctx, ".", openshiftModule)
	if err != nil {
		return nil, err
	}
	return readManifests(dir, files)
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
