// Package infraenv registers InfraEnvs with assisted-service, for the discovery image of each Machine.
package infraenv

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostnetwork"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// BootPreparer writes what does not depend on the discovery image, while assisted-service creates the image.
type BootPreparer interface {
	Prepare(ctx context.Context, s *scope.Scope) error
}

// Registrar keeps InfraEnvs in the desired state.
type Registrar struct {
	client   client.Client
	live     client.Reader
	metadata client.Reader
	writer   *writer.Writer
	boot     BootPreparer
	clock    clock.PassiveClock
	// mirrors caches the digests of ConfigMaps with mirrors, by version.
	mirrors kube.Contents[string]
	// recreations limits recreations of InfraEnvs because of mirrors.
	recreations *reconcile.Backoff
}

// New returns a Registrar. metadata reads the metadata of Secrets and ConfigMaps from the cache.
func New(w *writer.Writer, metadata client.Reader, boot BootPreparer, clk clock.Clock) *Registrar {
	return &Registrar{
		client: w.Client, live: w.Live, metadata: metadata, writer: w, boot: boot, clock: clk, mirrors: kube.NewContents[string](),
		recreations: reconcile.NewRecreations(clk),
	}
}

// waitForInfraEnvName reports why the InfraEnv with the Machine's name does not belong to the config.
func waitForInfraEnvName(s *scope.Scope, infraEnv *aiv1beta1.InfraEnv, foreign string) (proceed bool) {
	otherwise := "Delete the Machine instead, which wipes no server as it has no host yet; its replacement gets another name"
	if s.DataHandedOut() || s.HostChosen() {
		otherwise = "Deleting the Machine would wipe its host"
		if advice := ownership.InfraEnvAdvice(s.Facts, infraEnv); advice != "" {
			otherwise = advice + ". " + otherwise
		}
	}
	return s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.InfraEnvNotOursReason,
		"InfraEnv %s exists and was not created for this object: %s. It is not changed: its deletion would delete its Agents, and remove their "+
			"Nodes from the cluster that runs on them. %s", infraEnv.Name, foreign, otherwise)
}

// EnsureImage keeps the InfraEnv in the desired state until a host may have booted from it, and waits for the
// image.
func (i *Registrar) EnsureImage(ctx context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	if s.NamesakeForeign != "" {
		return waitForInfraEnvName(s, s.Namesake, s.NamesakeForeign), nil
	}
	if s.Namesake != nil && !s.Namesake.DeletionTimestamp.IsZero() && !s.HostMayHaveBooted() {
		s.Blockf(stage, bootstrapv1.WaitingForDiscoveryImageReason, "InfraEnv %s is being deleted. It is created again afterwards",
			s.Namesake.Name)
		return s.Overdue(stage, i.clock.Now(), scope.DeletedAt(s.Namesake)), nil
	}
	if err := i.gatherMirrors(ctx, s); err != nil {
		return false, err
	}
	s.InfraEnv = s.Namesake
	if s.HostMayHaveBooted() {
		if s.InfraEnv == nil {
			s.InfraEnv = s.InfraEnvs[0] // Agents are found through InfraEnvs
		}
		s.Pass(stage, describeKept(s, i.keptByBootedImage(s)))
		return true, nil
	}
	if proceed, err := i.pullSecret(ctx, s); !proceed {
		return proceed, err
	}
	if s.BootModeProblem != "" {
		return s.Block(stage, bootstrapv1.InvalidConfigurationReason, s.BootModeProblem), nil
	}
	wanted, err := desired.InfraEnv(s.Facts)
	if err != nil {
		return s.Block(stage, bootstrapv1.InvalidConfigurationReason, err.Error()), nil
	}
	if hostnetwork.Missing(s.Facts) && s.Namesake == nil {
		return waitForNetwork(s), nil // an image that is created afterwards has the addresses from the start
	}
	kept, proceed, err := i.reregister(ctx, s, wanted)
	if !proceed {
		return proceed, err
	}
	if proceed, err := i.applyInfraEnv(ctx, s, wanted); !proceed {
		return proceed, err
	}
	if i.discoveryImageReady(s, kept) {
		return true, nil
	}
	return false, i.boot.Prepare(ctx, s)
}

// applyInfraEnv writes the InfraEnv, and reports a refusal.
func (i *Registrar) applyInfraEnv(ctx context.Context, s *scope.Scope, wanted *aiv1beta1.InfraEnv) (bool, error) {
	if proceed, err := i.confirmNoInfraEnv(ctx, s, wanted.Name); !proceed {
		return proceed, err
	}
	if _, err := i.writer.Applier.Apply(ctx, wanted, s.Namesake); err != nil {
		if kube.IsRefused(err) {
			i.writer.Writer.Refused(&s.Again, bootstrapv1.DiscoveryImageReadyCondition, s.Config)
		}
		return false, infraEnvRefused(s, wanted.Name, err)
	}
	i.writer.Accepted(bootstrapv1.DiscoveryImageReadyCondition, s.Config)
	if s.Namesake == nil {
		i.writer.Created.Record(s.Key(), wanted.DeepCopy(), "")
		s.InfraEnv = wanted
	}
	return true, nil
}

// confirmNoInfraEnv checks, before the first write, whether the API server has an InfraEnv that the cache does not
// show yet. The write is forced, and would overwrite a foreign InfraEnv.
func (i *Registrar) confirmNoInfraEnv(ctx context.Context, s *scope.Scope, name string) (bool, error) {
	if s.Namesake != nil {
		return true, nil
	}
	found, err := kube.Read(ctx, i.live, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, &aiv1beta1.InfraEnv{})
	if err != nil || found == nil {
		return err == nil, err
	}
	s.Again.In(reconcile.CacheLag)
	if foreign := ownership.ForeignInfraEnv(s.Facts, found, writer.Wrote(found)); foreign != "" {
		return waitForInfraEnvName(s, found, foreign), nil
	}
	return s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForDiscoveryImageReason,
		"InfraEnv %s was created a moment ago", name), nil
}

// infraEnvRefused reports that the API server refused an InfraEnv. It returns all other errors.
func infraEnvRefused(s *scope.Scope, name string, err error) error {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	field := kube.UndeclaredField(err)
	switch {
	case field != "":
		s.Blockf(stage, bootstrapv1.InvalidConfigurationReason, writer.TooOld, "InfraEnvs", field)
	case kube.IsRefused(err):
		s.Blockf(stage, bootstrapv1.DiscoveryImageFailedReason, "InfraEnv %s is refused: %s", name, assisted.RedactURLs(err.Error()))
	default:
		return err
	}
	return nil
}

// discoveryImageReady reports the state of the image. Once bootstrap data was handed out, the next phases do not
// need the image. kept names a field that did not reach the image.
func (i *Registrar) discoveryImageReady(s *scope.Scope, kept string) (proceed bool) {
	const stage = bootstrapv1.DiscoveryImageReadyCondition
	image := assisted.ObserveImage(s.InfraEnv)
	switch {
	case hostnetwork.Missing(s.Facts):
		return waitForNetwork(s)
	case image.Failure != "":
		s.Blockf(stage, bootstrapv1.DiscoveryImageFailedReason, "assisted-service cannot create the discovery image of InfraEnv %s: %s",
			s.InfraEnv.Name, image.Failure)
	case image.ISOURL == "" && image.IgnitionURL == "":
		s.Blockf(stage, bootstrapv1.WaitingForDiscoveryImageReason,
			"waiting for assisted-service to create the discovery image of InfraEnv %s", s.InfraEnv.Name)
		// assisted-service has not processed the InfraEnv at all.
		if len(s.InfraEnv.Status.Conditions) == 0 {
			s.Overdue(stage, i.clock.Now(), s.InfraEnv.CreationTimestamp.Time)
		}
	case hostnetwork.Pending(s.Facts, s.InfraEnv):
		s.Blockf(stage, bootstrapv1.WaitingForDiscoveryImageReason,
			"waiting for assisted-service to add the NMStateConfigs that match %s to the discovery image of InfraEnv %s",
			hostnetwork.Selector(s.Facts),
			s.InfraEnv.Name)
	default:
		s.Pass(stage, describeKept(s, kept))
		return true
	}
	return s.DataHandedOut()
}

// pullSecret waits for the pull secret: assisted-service does not notice that a missing pull secret was created.
func (i *Registrar) pullSecret(ctx context.Context, s *scope.Scope) (bool, error) {
	name := s.PullSecretName()
	if name == "" {
		return s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.PullSecretMissingReason,
			"neither spec.pullSecretRef nor ClusterDeployment %s names a pull secret: set one of them", s.Deployment.Name), nil
	}
	secret, err := kube.Read(ctx, i.metadata, client.ObjectKey{Namespace: s.Config.Namespace, Name: name}, kube.MetadataOf(kube.Secret))
	if err != nil {
		return false, err
	}
	if secret == nil {
		return s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.PullSecretMissingReason,
			"Secret %s does not exist: create it with type kubernetes.io/dockerconfigjson", name), nil
	}
	return true, nil
}

func waitForNetwork(s *scope.Scope) (proceed bool) {
	return s.Blockf(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForNMStateConfigReason,
		"waiting for an NMStateConfig that matches %s (spec.nmStateConfigLabelSelector): create it, with the MAC addresses of the host",
		hostnetwork.Selector(s.Facts))
}
