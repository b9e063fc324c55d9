package assistedsim

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	clusterDeploymentFinalizer = "clusterdeployments.agent-install.openshift.io/ai-deprovision"
	clusterInstallFinalizer    = "agentclusterinstall.agent-install.openshift.io/ai-deprovision"

	// pauseAnnotation on a ClusterDeployment blocks the installation, like
	// AgentClusterInstall.spec.holdInstallation.
	pauseAnnotation = "hive.openshift.io/reconcile-pause"
)

// reconcileCluster reconciles a ClusterDeployment and its AgentClusterInstall. The request has the name of the
// ClusterDeployment.
func (s *Simulator) reconcileCluster(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cd := &hivev1.ClusterDeployment{}
	if err := s.live.Get(ctx, req.NamespacedName, cd); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, s.reconcileOrphans(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, fmt.Errorf("cannot read ClusterDeployment: %w", err)
	}
	ref := cd.Spec.ClusterInstallRef
	if ref == nil || ref.Kind != "AgentClusterInstall" {
		return ctrl.Result{}, nil
	}
	aci := &hiveext.AgentClusterInstall{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: cd.Namespace, Name: ref.Name}, aci)
	switch {
	case apierrors.IsNotFound(err):
		aci = nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("cannot read AgentClusterInstall: %w", err)
	}
	if !cd.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, s.releaseDeployment(ctx, cd, aci)
	}
	if controllerutil.AddFinalizer(cd, clusterDeploymentFinalizer) {
		base := cd.DeepCopy()
		controllerutil.RemoveFinalizer(base, clusterDeploymentFinalizer)
		if err := s.client.Patch(ctx, cd, client.MergeFrom(base)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	switch {
	case aci == nil:
		return ctrl.Result{}, nil
	case !aci.DeletionTimestamp.IsZero():
		return ctrl.Result{}, s.releaseInstall(ctx, cd, aci)
	}
	return s.driveCluster(ctx, cd, aci)
}

// driveCluster publishes the cluster's state and advances the cluster by one step, like reconcileAgent.
func (s *Simulator) driveCluster(ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) (ctrl.Result, error) {
	base := aci.DeepCopy()
	controllerutil.AddFinalizer(aci, clusterInstallFinalizer)
	if err := controllerutil.SetOwnerReference(cd, aci, s.client.Scheme()); err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot own AgentClusterInstall: %w", err)
	}
	if !equality.Semantic.DeepEqual(base.ObjectMeta, aci.ObjectMeta) {
		if err := s.client.Patch(ctx, aci, client.MergeFrom(base)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	c, err := s.ensureCluster(ctx, cd, aci)
	if err != nil {
		return ctrl.Result{}, err
	}
	if c == nil {
		return ctrl.Result{}, nil // its dependencies are watched
	}
	for {
		if err := s.publishCluster(ctx, aci, c); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		again, wait, err := s.advanceCluster(ctx, cd, aci, c)
		if err != nil || !again {
			return ctrl.Result{RequeueAfter: wait}, err
		}
	}
}

// ensureCluster registers the cluster as soon as its inputs exist. It returns nil after it published the
// missing input.
func (s *Simulator) ensureCluster(ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) (*cluster, error) {
	key := client.ObjectKeyFromObject(cd)
	s.mu.Lock()
	c := s.clusters[key]
	installed := imported(cd, aci) && !s.faults.lost[key]
	known := c != nil && (installed || !c.waiting())
	if known {
		c.specError = c.ignoreValidations(aci) // the admission webhook refuses changes of the spec
	}
	s.mu.Unlock()
	if known {
		return c, nil
	}
	if installed {
		if problem := s.checkImport(ctx, cd, aci); problem != nil {
			return nil, s.publishUnavailable(ctx, aci, problem)
		}
		return s.registerCluster(cd, aci, true), nil
	}
	problem := s.checkInputs(ctx, cd, aci)
	if c == nil && problem == nil {
		problem = checkRegistration(cd, aci)
	}
	if c == nil && problem != nil {
		return nil, s.publishUnavailable(ctx, aci, problem)
	}
	image, err := s.releaseImage(ctx, aci)
	if err != nil {
		return nil, err
	}
	if c == nil {
		c = s.registerCluster(cd, aci, false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem == nil {
		problem = c.acceptChanges(cd, aci)
	}
	c.specError, c.releaseImage = problem, image
	c.hold = aci.Spec.HoldInstallation || cd.Annotations[pauseAnnotation] == "true"
	if meta := cd.Spec.ClusterMetadata; meta != nil {
		c.kubeconfigSecret = meta.AdminKubeconfigSecretRef.Name
	}
	return c, nil
}

// imported reports whether the cluster is already installed but unknown to the service, which then only adds
// hosts.
func imported(cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall) bool {
	if cd.Spec.Installed {
		return true
	}
	for _, condition := range aci.Status.Conditions {
		if condition.Type == hiveext.ClusterCompletedCondition {
			return condition.Reason == hiveext.ClusterInstalledReason
		}
	}
	return false
}

func (s *Simulator) registerCluster(cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall, installed bool) *cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &cluster{
		key: client.ObjectKeyFromObject(cd), name: cd.Spec.ClusterName, id: uuid.NewString(), openshiftID: uuid.NewString(),
		spec:  *aci.Spec.DeepCopy(),
		state: models.ClusterStatusInsufficient, info: infoClusterInsufficient, failing: notReadyHosts,
	}
	if installed {
		c.prepared, c.operatorsDone = true, true
		if meta := cd.Spec.ClusterMetadata; meta != nil {
			c.kubeconfigSecret = meta.AdminKubeconfigSecretRef.Name
		}
		c.enter(models.ClusterStatusAddingHosts, infoClusterInstalled, 0)
	}
	s.clusters[c.key] = c
	s.touchReferrers(c.key)
	s.touchCluster(c.key)
	return c
}

// advanceCluster advances the cluster by one step, after it wrote the objects that the service creates in this
// step.
func (s *Simulator) advanceCluster(
	ctx context.Context, cd *hivev1.ClusterDeployment, aci *hiveext.AgentClusterInstall, c *cluster,
) (again bool, wait time.Duration, err error) {
	s.mu.Lock()
	if s.clusters[c.key] != c || c.deleting {
		s.mu.Unlock()
		return false, 0, nil
	}
	next, before := s.nextClusterState(c), c.state
	wait = time.Until(c.due)
	// While the service refuses a change, it hands over no credentials, and the cluster adds no hosts. Hosts are installed.
	refusing := c.specError != nil && !c.waiting()
	s.mu.Unlock()
	switch {
	case next == nil, refusing && (next.state == models.ClusterStatusInstalled || next.state == models.ClusterStatusAddingHosts):
		return false, 0, nil
	case wait > 0:
		return false, wait, nil
	case refusing:
	case next.state == models.ClusterStatusInstalling && before == models.ClusterStatusPreparingForInstallation:
		err = s.handOver(ctx, cd, aci, c, false)
	case next.state == models.ClusterStatusInstalled:
		err = s.handOver(ctx, cd, aci, c, true)
	}
	if err != nil {
		return false, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterCluster(c, next)
	return true, 0, nil
}

// platform returns the platform that the service derives from the spec: none with user-managed networking,
// otherwise bare metal.
func (c *cluster) platform() hiveext.PlatformType {
	switch {
	case c.spec.PlatformType != "":
		return c.spec.PlatformType
	case c.userManagedNetworking():
		return hiveext.NonePlatformType
	}
	return hiveext.BareMetalPlatformType
}

func (c *cluster) userManagedNetworking() bool {
	if set := c.spec.Networking.UserManagedNetworking; set != nil {
		return *set
	}
	return c.singleNode() || c.spec.PlatformType == hiveext.NonePlatformType
}
