package assistedservice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/openshift/assisted-service/models"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
)

// startScript gives assisted-service the two files at fixed paths, and runs it. A private layer in memory
// covers both folders, so that the machine does not change. Settings of container tools are hidden: they could
// contain mirrors of registries.
const startScript = `set -e
mount --make-rprivate /
folder=$1
shift
mkdir -p "$folder/mounts"
mount -t tmpfs assisted-service "$folder/mounts"
for covered in /etc "$(readlink -f /var/run)"; do
	layer=$folder/mounts/$(basename "$covered")
	mkdir -p "$layer/changes" "$layer/work"
	mount -t overlay assisted-service -o "lowerdir=$covered,upperdir=$layer/changes,workdir=$layer/work" "$covered"
done
rm -rf /etc/containers
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount /etc/pki/ca-trust/extracted/pem
cp "$folder/namespace" /var/run/secrets/kubernetes.io/serviceaccount/namespace
cp "$folder/ca.crt" /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
exec "$@"
`

// ocScript replaces the OpenShift client of assisted-service. It returns the version of a release image, the
// images in it, and their architecture.
const ocScript = `#!/bin/sh
for argument; do
	case $argument in
	--registry-config=*) ;;
	--image-for=*) name=${argument#*=} ;;
	*) image=$argument ;;
	esac
done
case "$*" in
"image info "*)
	while read -r known _ architecture; do
		if [ "$known" = "$image" ] && [ "$architecture" = multi ]; then
			echo "error: the image is a manifest list and contains multiple images" >&2
			exit 1
		elif [ "$known" = "$image" ]; then
			echo "{\"config\":{\"architecture\":\"$architecture\"}}"
			exit
		fi
	done <"${0%/*}/../releases"
	echo '{"config":{"architecture":"amd64"}}'
	;;
*--image-for=*) echo "quay.io/openshift-release-dev/ocp-v4.0-art-dev:$name" ;;
"adm release info "*)
	while read -r known version _; do
		if [ "$known" = "$image" ]; then
			echo "'$version'"
			exit
		fi
	done <"${0%/*}/../releases"
	echo "error: unable to read image $image: not found" >&2
	exit 1
	;;
*)
	echo "error: not simulated: oc $*" >&2
	exit 1
	;;
esac
`

// skopeoScript replaces skopeo for multi-architecture release images.
const skopeoScript = `#!/bin/sh
echo '{"manifests":[{"platform":{"architecture":"amd64"}},{"platform":{"architecture":"arm64"}}]}'
`

// writeSurroundings writes the files that the service requires; ca is any CA.
func (s *Service) writeSurroundings(ca []byte) error {
	for _, folder := range []string{"data", "cache", "tmp"} {
		if err := os.Mkdir(s.file(folder), 0o700); err != nil {
			return fmt.Errorf("cannot create a folder for assisted-service: %w", err)
		}
	}
	if err := process.WriteFiles(s.folder, map[string][]byte{
		"start.sh": []byte(startScript), "namespace": []byte(namespaceName), "ca.crt": ca, "releases": nil,
	}); err != nil {
		return err
	}
	if err := process.WriteFiles(s.file("bin"), map[string][]byte{"oc": []byte(ocScript), "skopeo": []byte(skopeoScript)}); err != nil {
		return err
	}
	for _, program := range []string{"oc", "skopeo"} {
		if err := os.Chmod(s.file("bin", program), 0o700); err != nil {
			return fmt.Errorf("cannot make %s a program: %w", program, err)
		}
	}
	return nil
}

// variables returns the settings of the service. They contain those of its operator on a hub
// (internal/controller/controllers/agentserviceconfig_controller.go), those of a service outside of a cluster,
// and intervals and timeouts for tests.
func (s *Service) variables(options Options, kubeconfig, socket string) ([]string, error) {
	images, err := operatingSystems()
	if err != nil {
		return nil, err
	}
	requirements, err := hardwareRequirements()
	if err != nil {
		return nil, err
	}
	variables := []string{
		"KUBECONFIG=" + kubeconfig,
		"PATH=" + s.file("bin") + ":" + os.Getenv("PATH"),
		"TMPDIR=" + s.file("tmp"),
		"WORK_DIR=" + s.file("data"),
		"ISO_CACHE_DIR=" + s.file("cache"),
		"NAMESPACE=" + namespaceName,
		"DB_HOST=" + socket, "DB_PORT=5432", "DB_USER=" + databaseUser, "DB_NAME=" + databaseName, "DB_PASS=unused",
		"DEPLOY_TARGET=onprem",
		"STORAGE=filesystem",
		"DUMMY_IGNITION=true",
		"ENABLE_KUBE_API=true",
		"ALLOW_CONVERGED_FLOW=false",
		"CHECK_CLUSTER_VERSION=true",
		"ENABLE_SINGLE_NODE_DNSMASQ=true",
		"ENABLE_DATA_COLLECTION=false",
		"INSTALL_INVOKER=assisted-installer-operator",
		"ISO_IMAGE_TYPE=minimal-iso",
		"SERVICE_BASE_URL=" + cmp.Or(options.BaseURL, s.url),
		"IMAGE_SERVICE_BASE_URL=" + cmp.Or(options.ImageServiceURL, "http://image-service.invalid"),
		"PUBLIC_CONTAINER_REGISTRIES=" + strings.Join(append([]string{"quay.io", "registry.ci.openshift.org"}, options.Registries...), ","),
		"OS_IMAGES=" + images,
		"HW_VALIDATOR_REQUIREMENTS=" + requirements,
		"AUTH_TYPE=" + string(cmp.Or(options.Auth, AuthNone)),

		"CLUSTER_MONITOR_INTERVAL=500ms", // 10 s
		"HOST_MONITOR_INTERVAL=500ms",    // 8 s
		"APPROVE_CSRS_REQUEUE_DURATION=1s",
		"HOST_MAX_DISCONNECTION_TIME=1m", // 3 min
		"DISK_CHECK_TIMEOUT=1m",          // 8 min
		"IMAGE_AVAILABILITY_TIMEOUT=1m",  // 16 min
		// The minimum is the longest check plus 2 minutes for the cluster, 1 minute for a host.
		"PREPARE_FOR_INSTALLATION_TIMEOUT=1m",
		"PREPARE_FOR_INSTALLATION_HOST_TIMEOUT=1m",
	}
	if s.key == nil {
		return variables, nil
	}
	private, public, err := s.key.PEM()
	if err != nil {
		return nil, err
	}
	return append(variables, "EC_PRIVATE_KEY_PEM="+private, "EC_PUBLIC_KEY_PEM="+public), nil
}

// firstMinor and lastMinor are the OpenShift 4 releases whose OS images the service lists.
const firstMinor, lastMinor = 14, 22

// operatingSystems returns the OS images, one for each minor release and architecture. No client downloads
// them.
func operatingSystems() (string, error) {
	var images models.OsImages
	for minor := firstMinor; minor <= lastMinor; minor++ {
		for _, architecture := range []string{"x86_64", "arm64"} {
			release := fmt.Sprintf("4.%d", minor)
			images = append(images, &models.OsImage{
				OpenshiftVersion: &release,
				CPUArchitecture:  &architecture,
				URL:              ptr.To(fmt.Sprintf("https://mirror.invalid/rhcos/%s/rhcos-live.%s.iso", release, architecture)),
				Version:          ptr.To(fmt.Sprintf("4%d.94.202501010000-0", minor)),
			})
		}
	}
	encoded, err := json.Marshal(images)
	if err != nil {
		return "", fmt.Errorf("cannot encode the operating systems: %w", err)
	}
	return string(encoded), nil
}

// hardwareRequirements returns the requirements in the documentation of OpenShift.
func hardwareRequirements() (string, error) {
	least := func(cores, gibibytes int64) *models.ClusterHostRequirementsDetails {
		return &models.ClusterHostRequirementsDetails{
			CPUCores: cores, RAMMib: gibibytes << 10, DiskSizeGb: 100,
			InstallationDiskSpeedThresholdMs: 10,
		}
	}
	encoded, err := json.Marshal([]models.VersionedHostRequirements{{
		Version: "default", MasterRequirements: least(4, 16), WorkerRequirements: least(2, 8), SNORequirements: least(8, 16),
	}})
	if err != nil {
		return "", fmt.Errorf("cannot encode the hardware requirements: %w", err)
	}
	return string(encoded), nil
}
