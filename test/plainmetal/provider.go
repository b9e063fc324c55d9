package plainmetal

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	plainmetalv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/plainmetal/api/v1beta1"
)

// manifests are what is installed: the CRDs, and what the control plane provider may write of these kinds.
//
//go:embed crd/*.yaml rbac.yaml
var manifests embed.FS

// A definition is served a moment after its creation.
const (
	servedInterval = 100 * time.Millisecond
	servedTimeout  = time.Minute
)

// fieldOwner owns what Install applies.
const fieldOwner = client.FieldOwner("plainmetal")

// Options of a Provider.
type Options struct {
	// Rack holds the servers.
	Rack *hosts.Rack
	// Servers are what Machines are given, in this order.
	Servers []hosts.Hardware
	// Log receives what the provider does. The zero value discards it.
	Log logr.Logger
}

// Provider runs the controllers.
type Provider struct{ manager ctrl.Manager }

// Install applies the CRDs and the ClusterRole to a management cluster, and returns when the kinds are served.
func Install(ctx context.Context, c client.Client) error {
	if err := applyManifests(ctx, c); err != nil {
		return err
	}
	for _, kind := range []string{"PlainMetalClusterList", "PlainMetalMachineList", "PlainMetalMachineTemplateList"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(plainmetalv1.GroupVersion.WithKind(kind))
		err := wait.PollUntilContextTimeout(ctx, servedInterval, servedTimeout, true,
			func(ctx context.Context) (bool, error) { return c.List(ctx, list) == nil, nil })
		if err != nil {
			return fmt.Errorf("%s is not served: %w", kind, err)
		}
	}
	return nil
}

func applyManifests(ctx context.Context, c client.Client) error {
	return fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := manifests.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
		objects, err := yaml.ToUnstructured(content)
		if err != nil {
			return fmt.Errorf("cannot decode %s: %w", path, err)
		}
		for i := range objects {
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&objects[i]), fieldOwner, client.ForceOwnership); err != nil {
				return fmt.Errorf("cannot apply %s: %w", path, err)
			}
		}
		return nil
	})
}

// New prepares a Provider on the API server behind cfg, where Install was called. Nothing runs before Start.
func New(cfg *rest.Config, options Options) (*Provider, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, plainmetalv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot make the scheme of the provider: %w", err)
		}
	}
	if options.Log.GetSink() == nil {
		options.Log = logr.Discard()
	}
	skip := true // several Providers may run in one process, one after the other
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: options.Log, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager of the provider: %w", err)
	}
	if err := (&clusters{client: manager.GetClient()}).setUp(manager); err != nil {
		return nil, err
	}
	machines := &machines{client: manager.GetClient(), reader: manager.GetAPIReader()}
	for _, hardware := range options.Servers {
		machines.servers = append(machines.servers, options.Rack.Server(hardware))
	}
	if err := machines.setUp(manager); err != nil {
		return nil, err
	}
	return &Provider{manager}, nil
}

// Start runs the controllers until ctx ends.
func (p *Provider) Start(ctx context.Context) error {
	if err := p.manager.Start(ctx); err != nil {
		return fmt.Errorf("the provider ended: %w", err)
	}
	return nil
}

func (r *clusters) setUp(manager ctrl.Manager) error {
	kind := plainmetalv1.GroupVersion.WithKind("PlainMetalCluster")
	err := ctrl.NewControllerManagedBy(manager).For(&plainmetalv1.PlainMetalCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(
			util.ClusterToInfrastructureMapFunc(context.Background(), kind, manager.GetClient(), &plainmetalv1.PlainMetalCluster{}))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot start the controller of clusters: %w", err)
	}
	return nil
}

func (r *machines) setUp(manager ctrl.Manager) error {
	ofCluster, err := util.ClusterToTypedObjectsMapper(manager.GetClient(), &plainmetalv1.PlainMetalMachineList{}, manager.GetScheme())
	if err == nil {
		err = ctrl.NewControllerManagedBy(manager).For(&plainmetalv1.PlainMetalMachine{}).
			Watches(&clusterv1.Machine{},
				handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(plainmetalv1.GroupVersion.WithKind("PlainMetalMachine")))).
			Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster)).
			Complete(r)
	}
	if err != nil {
		return fmt.Errorf("cannot start the controller of machines: %w", err)
	}
	return nil
}

// condition is Ready, as it is found.
func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: clusterv1.ReadyCondition, Status: status, Reason: reason, Message: message}
}
