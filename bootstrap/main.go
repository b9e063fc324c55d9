// The manager of the Agent Bootstrap provider. It discovers, identifies, approves and installs the host of
// every Machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostconfig"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/provider"
)

const managerName = "openshift-agent-bootstrap"

// Rights on cluster-scoped kinds, also for a manager that watches a single namespace. The labels of
// CustomResourceDefinitions list the versions that serve the contract of Cluster API.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
//
// On OpenShift hubs the servers of the manager follow the TLS profile in APIServer cluster:
// +kubebuilder:rbac:groups=config.openshift.io,resources=apiservers,resourceNames=cluster,verbs=get;list;watch

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, provider.ErrPrinted) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// authoritiesFlag names the authorities of assisted-service.
const authoritiesFlag = "assisted-service-authorities"

// settings are the flags of the manager.
type settings struct {
	provider.Options

	authorities string
}

// AddFlags adds the flags to the set.
func (o *settings) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	fs.StringVar(&o.authorities, authoritiesFlag, "", "File with certificate authorities (PEM), or folder of such files, that the manager "+
		"trusts for downloads from assisted-service, in addition to all others. It is read again for each download.")
}

func run(ctx context.Context, args []string) error {
	options := &settings{}
	flags := pflag.NewFlagSet(managerName, pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := options.Parse(flags, args, os.Stdout); err != nil {
		return err
	}
	authorities, err := bootmode.ReadAuthorities(options.authorities, ctrl.Log.WithName("authorities"))
	if err != nil {
		return fmt.Errorf("--%s: %w", authoritiesFlag, err)
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	mgr, err := options.NewManager(
		provider.ManagerSpec{
			Name:             managerName,
			FieldOwner:       writer.FieldOwner,
			Scheme:           scheme,
			Cache:            informer.Cached(),
			DefaultTransform: informer.TrimInfrastructure,
		},
	)
	if err != nil {
		return err
	}
	reconciler := hostconfig.New(hostconfig.Options{
		Client:      mgr.GetClient(),
		Metadata:    mgr.GetCache(),
		Live:        mgr.GetAPIReader(),
		Recorder:    mgr.GetEventRecorderFor(managerName), //nolint:staticcheck // the newer events need other fields and rights
		Selected:    options.Selected,
		Authorities: authorities,
	})
	if err := reconciler.SetupWithManager(ctx, mgr, options.ControllerOptions()); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager failed: %w", err)
	}
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	kinds := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme,
		aiv1beta1.AddToScheme, hiveext.AddToScheme, hivev1.AddToScheme, metal3.AddToScheme,
	)
	scheme := runtime.NewScheme()
	return scheme, kinds.AddToScheme(scheme)
}
