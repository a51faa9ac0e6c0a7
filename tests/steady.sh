#!/bin/sh
# make steady: how steady the tests are. `make test` fifteen times: once in quiet, five times beside two
# busy processes, and once in each odd surrounding (ONLY="busy-2 nohup": these two). Which tests failed
# in which is printed as it comes; the logs are in _build/steady. Hours: leave the machine alone.

all="quiet busy-1 nohup no-terminal busy-2 umask language busy-3 time-zone no-home busy-4 slow-pages
accent busy-5 other-user"
logs=$PWD/_build/steady
place=$(mktemp -d)
busy=
trap '[ -z "$busy" ] || kill $busy; rm -rf "$place"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$logs"

beside_busy() {
	for one in 1 2; do
		sh -c 'while :; do :; done' &
		busy="$busy $!"
	done
	"$@"
	status=$?
	kill $busy
	busy=
	return $status
}

as_nobody() {
	git clone -q . "$place/clone" && mkdir "$place/home" && chmod 755 "$place" && chown -R nobody "$place" &&
		runuser -u nobody -- env HOME="$place/home" make -C "$place/clone" test
}

surrounded() {
	case $1 in
	quiet) make test ;;
	busy-*) beside_busy make test ;;
	nohup) nohup make test ;;
	no-terminal) setsid --wait make test ;;
	umask) (umask 077 && make test) ;;
	language) LANG=C LC_ALL=C make test ;;
	time-zone) TZ=Asia/Kathmandu make test ;;
	no-home) HOME=/dev/null make test ;;
	slow-pages) AFM_SLOWER=3 make test ;;
	accent) git clone -q . "$place/a clone é" && make -C "$place/a clone é" test ;;
	other-user) as_nobody ;; # for root
	*) echo "there is no $1; choose of: $all" && return 2 ;;
	esac
}

green=0 tried=0
for name in ${*:-$all}; do
	tried=$((tried + 1))
	if surrounded "$name" >"$logs/$name" 2>&1 </dev/null; then
		green=$((green + 1))
		echo "$name: passed"
	else
		echo "$name: failed; the end of $logs/$name:"
		grep -E '^(FAILED|ERROR) ' "$logs/$name" || tail -n 5 "$logs/$name"
	fi
done
echo "$green of $tried passed"
[ "$green" -eq "$tried" ]
