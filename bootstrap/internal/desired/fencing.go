package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// FencingAnnotation holds a digest of the source of the fencing credentials of a host, without secret data.
// On a Secret it marks the Secret as ours. On an Agent its change triggers a new read, because
// assisted-service does not watch the Secret.
const FencingAnnotation = "bootstrap.cluster.x-k8s.io/fencing-source"

// Keys of the Secret that an Agent names (assisted-service, updateHostFencingCredentials in its
// agent_controller.go, August 2026).
const (
	fencingAddress      = "address"
	fencingUsername     = "username"
	fencingPassword     = "password"
	fencingVerification = "certificateVerification"
)

// Values of the key certificateVerification.
const (
	verificationEnabled  = "Enabled"
	verificationDisabled = "Disabled"
)

// redfishAddress matches an address that OpenShift's etcd operator can parse when the hosts are installed
// (addressRegEx in its pkg/tnf/pkg/pcs/fencing.go, 2025).
var redfishAddress = regexp.MustCompile(`^[a-z][a-z0-9+-]*://[^/@?#]+:[0-9]+/redfish/[^?#]+$`)

// Fencing is the source of the fencing credentials of a host.
type Fencing struct {
	// Secret is the name of the Secret in the Agent, Source the value of FencingAnnotation.
	Secret, Source string
}

func unusableCredentials(format string, args ...any) *UserError {
	return &UserError{bootstrapv1.FencingCredentialsUnusableReason, fmt.Sprintf(format, args...)}
}

// fencingReason is why the host must have a BMC.
const fencingReason = "a node of a two-node cluster is fenced by its BMC"

// FencingSecretRef returns the name of the Secret with the credentials. An annotation of the BareMetalHost
// can name a Secret that the user provides for fencing. The default is the Secret of its BMC.
func FencingSecretRef(f *facts.Facts) (name string, userProvided bool, err error) {
	if f.Host == nil {
		return "", false, unusableCredentials("Machine %s has no BareMetalHost: %s", f.Machine.Name, fencingReason)
	}
	if err := FencingProblem(f.Host); err != nil {
		return "", false, err
	}
	if named := f.Host.Annotations[metal3.FencingCredentialsAnnotation]; named != "" {
		return named, true, nil
	}
	return f.Host.Spec.BMC.CredentialsName, false, nil
}

// FencingProblem returns what blocks the fencing of a BareMetalHost, without a read of Secrets; nil if
// nothing does.
func FencingProblem(host *metal3.Host) error {
	switch {
	case host.Annotations[metal3.FencingCredentialsAnnotation] != "":
		return nil
	case host.Spec.BMC.CredentialsName == "":
		return unusableCredentials("BareMetalHost %s has no spec.bmc.credentialsName: %s", host.Name, fencingReason)
	}
	if _, err := metal3.RedfishAddress(host.Spec.BMC.Address); err != nil {
		return addressUnusable(host, err)
	}
	return nil
}

func addressUnusable(host *metal3.Host, cause error) error {
	return unusableCredentials(
		"spec.bmc.address of BareMetalHost %s, by which the other node fences it, %s. Or name a Secret with other credentials in its "+
			"annotation %s",
		host.Name,
		cause,
		metal3.FencingCredentialsAnnotation,
	)
}

// UserFencing returns the fencing settings for a Secret that the user provides.
func UserFencing(f *facts.Facts, secret *corev1.Secret) (Fencing, error) {
	named := fmt.Sprintf(
		"Secret %s, which the annotation %s of BareMetalHost %s names",
		secret.Name,
		metal3.FencingCredentialsAnnotation,
		f.Host.Name,
	)
	if !redfishAddress.Match(secret.Data[fencingAddress]) {
		return Fencing{}, unusableCredentials(
			"%s: the key %s must be like redfish+https://bmc.example.com:443/redfish/v1/Systems/1, with port and path",
			named,
			fencingAddress,
		)
	}
	for _, key := range []string{fencingUsername, fencingPassword} {
		if len(secret.Data[key]) == 0 {
			return Fencing{}, unusableCredentials("%s, has no key %s: add it", named, key)
		}
	}
	if !slices.Contains([]string{verificationEnabled, verificationDisabled}, string(secret.Data[fencingVerification])) {
		return Fencing{}, unusableCredentials(
			"%s: the key %s must be %s or %s",
			named,
			fencingVerification,
			verificationEnabled,
			verificationDisabled,
		)
	}
	return Fencing{Secret: secret.Name, Source: fencingSource(secret)}, nil
}

// FencingSecret returns the Secret with the address and the credentials of the host's BMC. The config owns
// the Secret.
func FencingSecret(f *facts.Facts, credentials *corev1.Secret) (*corev1.Secret, error) {
	address, err := metal3.RedfishAddress(f.Host.Spec.BMC.Address)
	if err != nil {
		return nil, addressUnusable(f.Host, err)
	}
	for _, key := range []string{fencingUsername, fencingPassword} {
		if len(credentials.Data[key]) == 0 {
			return nil, unusableCredentials(
				"Secret %s with the credentials of the BMC of BareMetalHost %s has no %s: add it",
				credentials.Name,
				f.Host.Name,
				key,
			)
		}
	}
	verification := verificationEnabled
	if f.Host.Spec.BMC.DisableCertificateVerification {
		verification = verificationDisabled
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       f.Config.Namespace,
			Name:            hostrole.FencingSecretName(f),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: f.Cluster.Name},
			Annotations:     map[string]string{FencingAnnotation: fencingSource(credentials, address, verification)},
			OwnerReferences: []metav1.OwnerReference{OwnerOf(f.Config)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			fencingAddress: []byte(address), fencingVerification: []byte(verification),
			fencingUsername: credentials.Data[fencingUsername], fencingPassword: credentials.Data[fencingPassword],
		},
	}, nil
}

// fencingSource returns a digest of the version of a Secret and of further inputs. It contains no secret
// data.
func fencingSource(secret metav1.Object, inputs ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append(inputs, string(secret.GetUID()), secret.GetResourceVersion()), "\n")))
	return hex.EncodeToString(sum[:8])
}
