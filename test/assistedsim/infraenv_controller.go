package assistedsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/token"
)

const infraEnvFinalizer = "infraenv.agent-install.openshift.io/ai-deprovision"

const defaultArchitecture = "x86_64"

// errHostsBound blocks the deletion of an InfraEnv.
//
//nolint:staticcheck // text of the service
var errHostsBound = errors.New("Failed to delete infraEnv, existing hosts bound and not installed")

// leaving are the states of hosts that are deleted together with their InfraEnv: unbound and installed hosts
// (infraenv_controller.go: deregisterInfraEnvWithHosts).
var leaving = []string{
	models.HostStatusInsufficientUnbound, models.HostStatusDisconnectedUnbound, models.HostStatusDiscoveringUnbound,
	models.HostStatusKnownUnbound,
	models.HostStatusInstalled, models.HostStatusAddedToExistingCluster, models.HostStatusUnbinding,
	models.HostStatusUnbindingPendingUserAction,
}

// hasHosts reports whether an InfraEnv has hosts that block its deletion.
func (s *Simulator) hasHosts(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if h.infraEnv.key == key && !slices.Contains(leaving, h.state) {
			return true
		}
	}
	return false
}

// reconcileInfraEnv registers the InfraEnv and publishes the URLs of its image.
func (s *Simulator) reconcileInfraEnv(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	env := &InfraEnv{}
	if err := s.live.Get(ctx, req.NamespacedName, env); err != nil {
		if apierrors.IsNotFound(err) {
			s.deregister(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read InfraEnv: %w", err)
	}
	base := env.DeepCopy()
	if !env.DeletionTimestamp.IsZero() {
		if !controllerutil.RemoveFinalizer(env, infraEnvFinalizer) {
			return ctrl.Result{}, nil
		}
		if s.hasHosts(req.NamespacedName) {
			// Retried with backoff, like the service: no watch reports the deletion of the hosts.
			return ctrl.Result{}, errHostsBound
		}
		s.deregister(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(s.client.Patch(ctx, env, client.MergeFrom(base)))
	}
	if controllerutil.AddFinalizer(env, infraEnvFinalizer) {
		if err := s.client.Patch(ctx, env, client.MergeFrom(base)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	base = env.DeepCopy()
	s.createImage(ctx, env)
	if equality.Semantic.DeepEqual(base.Status, env.Status) {
		return ctrl.Result{}, nil
	}
	if err := s.client.Status().Patch(ctx, env, client.MergeFrom(base)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, nil
}

func (s *Simulator) deregister(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.infraEnvs, key)
	delete(s.references, key)
	s.notify()
}

// createImage fills the status. A missing cluster keeps the URLs; a failed image removes them.
func (s *Simulator) createImage(ctx context.Context, env *InfraEnv) {
	status := &env.Status
	status.AgentLabelSelector = metav1.LabelSelector{MatchLabels: map[string]string{aiv1beta1.InfraEnvNameLabel: env.Name}}
	set := func(value corev1.ConditionStatus, reason, message string) {
		conditionsv1.SetStatusConditionNoHeartbeat(&status.Conditions, conditionsv1.Condition{
			Type: aiv1beta1.ImageCreatedCondition, Status: value, Reason: reason, Message: message,
		})
	}
	if missing := s.missingCluster(env); missing != "" {
		set(corev1.ConditionUnknown, missingClusterDeploymentReason, missing)
		return
	}
	record, err := s.registerInfraEnv(ctx, env)
	if err != nil {
		status.ISODownloadURL, status.CreatedTime = "", nil
		set(corev1.ConditionFalse, imageCreationErrorReason, imageStateFailedToCreate+": "+err.Error())
		return
	}
	status.ISODownloadURL, status.BootArtifacts = record.isoURL, record.urls
	if status.CreatedTime == nil || !status.CreatedTime.Time.Equal(record.createdAt) {
		status.CreatedTime = seconds(record.createdAt)
	}
	status.InfraEnvDebugInfo.StaticNetworkDownloadURL = record.networksURL
	status.InfraEnvDebugInfo.EventsURL = s.serviceURL + "/api/assisted-install/v2/events?infra_env_id=" + record.id
	set(corev1.ConditionTrue, infraEnvAvailableReason, infraEnvAvailableMessage+": "+imageStateCreated)
}

// missingCluster returns the reason why an InfraEnv waits: the service does not know the cluster of its
// clusterRef.
func (s *Simulator) missingCluster(env *InfraEnv) string {
	ref := env.Spec.ClusterRef
	if ref == nil {
		return ""
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.references[client.ObjectKeyFromObject(env)] = key
	if c := s.clusters[key]; c == nil || c.deleting {
		return missingClusterDeploymentReference
	}
	return ""
}

// registerInfraEnv checks the inputs and updates the record of the InfraEnv. A changed input regenerates the
// image.
func (s *Simulator) registerInfraEnv(ctx context.Context, env *InfraEnv) (*infraEnv, error) {
	key := client.ObjectKeyFromObject(env)
	if env.Spec.PullSecretRef == nil {
		return nil, inputErrorf("missing reference to pull secret")
	}
	secret, err := s.pullSecret(ctx, env.Namespace, env.Spec.PullSecretRef.Name)
	if err != nil {
		return nil, err
	}
	version, err := s.osVersion(env)
	if err != nil {
		return nil, err
	}
	networks, err := s.networksOf(ctx, env)
	if err != nil {
		return nil, err
	}
	mirrors, err := s.mirrors(ctx, env.Spec.MirrorRegistryRef)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if msg := cmp.Or(s.faults.images[key], s.faults.images[wholeNamespace(key)]); msg != "" {
		return nil, inputError{msg}
	}
	record := s.infraEnvs[key]
	if record == nil || record.uid != env.UID {
		record = &infraEnv{key: key, uid: env.UID, id: uuid.NewString()}
		s.infraEnvs[key] = record
		s.notify()
	}
	if ref := env.Spec.ClusterRef; ref != nil {
		record.clusterRef = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	}
	record.agentLabels = env.Spec.AgentLabels
	record.autoApprove = env.Spec.AgentApproval != nil && env.Spec.AgentApproval.AutoApprove
	record.updatedAt = time.Now() // the service writes its row each time
	spec := env.Spec.DeepCopy()
	keepRemoved(&spec.InfraEnvSpec, &record.spec.InfraEnvSpec)
	if record.generation > 0 {
		spec.MirrorRegistryRef, mirrors = record.spec.MirrorRegistryRef, record.mirrors // read and checked, but not stored
	}
	inputs := []any{imageInputs(spec), string(secret), version, mirrors}
	for i := range networks {
		inputs = append(inputs, networks[i].Spec)
	}
	fingerprint := asJSON(inputs)
	if record.fingerprint == fingerprint {
		return record, nil
	}
	record.fingerprint, record.spec, record.pullSecret = fingerprint, *spec, secret
	record.networks, record.mirrors = networks, mirrors
	return record, s.generate(record, version)
}

// keepRemoved keeps the values of removed fields, like the service, which stores only new values. Removed
// kernel arguments and certificates are cleared.
func keepRemoved(spec, before *aiv1beta1.InfraEnvSpec) {
	spec.SSHAuthorizedKey = cmp.Or(spec.SSHAuthorizedKey, before.SSHAuthorizedKey)
	spec.IgnitionConfigOverride = cmp.Or(spec.IgnitionConfigOverride, before.IgnitionConfigOverride)
	if len(spec.AdditionalNTPSources) == 0 {
		spec.AdditionalNTPSources = before.AdditionalNTPSources
	}
	if before.Proxy == nil {
		return
	}
	if spec.Proxy == nil {
		spec.Proxy = &aiv1beta1.Proxy{}
	}
	spec.Proxy.HTTPProxy = cmp.Or(spec.Proxy.HTTPProxy, before.Proxy.HTTPProxy)
	spec.Proxy.HTTPSProxy = cmp.Or(spec.Proxy.HTTPSProxy, before.Proxy.HTTPSProxy)
	spec.Proxy.NoProxy = cmp.Or(spec.Proxy.NoProxy, before.Proxy.NoProxy)
}

// imageInputs returns the fields whose change regenerates the image.
func imageInputs(spec *InfraEnvSpec) []any {
	return []any{
		spec.Proxy, spec.AdditionalNTPSources, spec.SSHAuthorizedKey, spec.IgnitionConfigOverride, spec.KernelArguments,
		spec.AdditionalTrustBundle, spec.NMStateConfigLabelSelector, spec.ImageType, spec.IPXEScriptType, spec.CpuArchitecture,
	}
}

// osVersion returns the minor version of the image: the requested version, by default the latest.
func (s *Simulator) osVersion(env *InfraEnv) (string, error) {
	wanted := env.Spec.OSImageVersion
	if wanted == "" {
		return s.opts.OSVersions[len(s.opts.OSVersions)-1], nil
	}
	if !slices.Contains(s.opts.OSVersions, wanted) {
		return "", inputErrorf("The requested OS image for version (%s) and CPU architecture (%s) isn't specified in OS images list",
			wanted, architecture(&env.Spec))
	}
	return wanted, nil
}

func architecture(spec *InfraEnvSpec) string {
	if spec.CpuArchitecture == "" {
		return defaultArchitecture
	}
	return spec.CpuArchitecture
}

// generate computes the URLs. Without authentication the URLs and their time of creation stay the same, so that
// a regenerated image is not visible. With authentication, each image has its own token.
func (s *Simulator) generate(record *infraEnv, version string) error {
	record.generation++
	if record.createdAt.IsZero() || s.opts.Auth == AuthLocal {
		record.createdAt = time.Now().Truncate(time.Second)
	}
	arch, images := architecture(&record.spec), s.opts.ImageServiceURL
	path, query := "/byid/"+record.id, ""
	if s.opts.Auth == AuthLocal {
		signed, err := s.tokens.Sign(token.InfraEnv, record.id)
		if err != nil {
			return err
		}
		record.token = signed
		path, query = "/byapikey/"+signed, "&api_key="+signed
	}
	image := "minimal.iso"
	if record.spec.ImageType == aiv1beta1.ImageTypeFullIso {
		image = "full.iso"
	}
	files := s.serviceURL + "/api/assisted-install/v2/infra-envs/" + record.id + "/downloads/files?file_name="
	record.isoURL = fmt.Sprintf("%s%s/%s/%s/%s", images, path, version, arch, image)
	record.urls = BootArtifacts{
		KernelURL:            fmt.Sprintf("%s/boot-artifacts/kernel?arch=%s&version=%s", images, arch, version),
		RootfsURL:            fmt.Sprintf("%s/boot-artifacts/rootfs?arch=%s&version=%s", images, arch, version),
		InitrdURL:            fmt.Sprintf("%s/images/%s/pxe-initrd?arch=%s%s&version=%s", images, record.id, arch, query, version),
		IpxeScriptURL:        files + "ipxe-script" + query,
		DiscoveryIgnitionURL: files + "discovery.ign" + query,
	}
	record.networksURL = ""
	if len(record.networks) > 0 {
		record.networksURL = files + "static-network-config" + query
	}
	if record.spec.IPXEScriptType == bootOrderControl {
		record.urls.IpxeScriptURL += "&ipxe_script_type=boot-order-control"
	}
	return nil
}
