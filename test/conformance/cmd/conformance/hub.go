package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capiyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
)

const (
	crdKind = "CustomResourceDefinition"
	// user is the field owner of what the command applies.
	user = "conformance"
)

// hub is a management cluster of which the command knows the kubeconfig only.
type hub struct {
	description *description
	kubeconfig  string
	core        string
	config      *rest.Config
	client      client.Client
	stop        func()
}

// newHub returns the hub of a kubeconfig, or one that start starts with the manifests of Cluster API core.
func newHub(d *description, kubeconfig, core string) (*hub, error) {
	if (kubeconfig == "") == (core == "") {
		return nil, errors.New("use one of the flags -kubeconfig and -core")
	}
	return &hub{description: d, kubeconfig: kubeconfig, core: core, stop: func() {}}, nil
}

// start connects to the hub of the kubeconfig, or starts an API server.
func (h *hub) start(ctx context.Context, options conformance.HubOptions) (conformance.Hub, error) {
	if options.Bare {
		return nil, fmt.Errorf("a second hub is not available: %w", errors.ErrUnsupported)
	}
	if h.core != "" {
		if err := h.startAPIServer(); err != nil {
			return nil, err
		}
	}
	var err error
	if h.config, err = clientcmd.BuildConfigFromFlags("", h.kubeconfig); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	h.config.QPS, h.config.Burst = -1, -1 // the API server limits requests
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register the kinds of Cluster API: %w", err)
	}
	if h.client, err = client.New(h.config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("cannot connect to the hub: %w", err)
	}
	if h.core != "" {
		return h, h.install(ctx)
	}
	return h, nil
}

// startAPIServer starts etcd and kube-apiserver, and writes the kubeconfig of an administrator.
func (h *hub) startAPIServer() error {
	// The default of 20 seconds is too short for kube-apiserver on a busy machine.
	server := &envtest.Environment{ControlPlaneStartTimeout: 3 * time.Minute}
	if _, err := server.Start(); err != nil {
		return fmt.Errorf("cannot start an API server from the programs in KUBEBUILDER_ASSETS: %w", err)
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err == nil {
		h.kubeconfig = filepath.Join(dir, "kubeconfig")
		err = os.WriteFile(h.kubeconfig, server.KubeConfig, 0o600)
	}
	h.stop = func() { _, _ = server.Stop(), os.RemoveAll(dir) }
	return err
}

// install applies the CRDs and the ClusterRoles of core and of both providers. Their webhooks do not run: CRDs are
// not converted.
func (h *hub) install(ctx context.Context) error {
	files := []string{h.core}
	for name, c := range h.description.components() {
		files = append(files, filepath.Join(h.description.path(c.Release), name+"-components.yaml"))
	}
	for _, file := range files {
		objects, err := readObjects(file, conformance.WithDefaults)
		if err != nil {
			return err
		}
		for i := range objects {
			o := &objects[i]
			if o.GetKind() != crdKind && o.GetKind() != "ClusterRole" {
				continue
			}
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
			if err := h.apply(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hub) apply(ctx context.Context, o *unstructured.Unstructured) error {
	configuration := client.ApplyConfigurationFromUnstructured(o.DeepCopy())
	if err := h.client.Apply(ctx, configuration, client.FieldOwner(user), client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// readObjects reads manifests after a change of their text.
func readObjects(path string, change func([]byte) []byte) ([]unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	objects, err := capiyaml.ToUnstructured(change(content))
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests in %s: %w", path, err)
	}
	return objects, nil
}

// Config and Kubeconfig give access as an administrator.
func (h *hub) Config() *rest.Config { return h.config }

// Kubeconfig is the path of the kubeconfig.
func (h *hub) Kubeconfig() string { return h.kubeconfig }

// Stop stops an API server that the command has started.
func (h *hub) Stop() { h.stop() }

// Crash is not possible: the command does not run the managers.
func (*hub) Crash(string) func() int { return nil }

// Writes is not possible: only an audit log has requests that change nothing.
func (*hub) Writes(string, time.Time) (map[string]int, error) {
	return nil, unsupported("count requests that change nothing")
}

// Panics is not possible: the command does not have the logs of the managers.
func (*hub) Panics(context.Context) (int, error) {
	return 0, unsupported("read the logs of the managers")
}

func unsupported(operation string) error {
	return fmt.Errorf("the command cannot %s: %w", operation, errors.ErrUnsupported)
}
