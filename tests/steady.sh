#!/bin/sh
# make steady N=15: how steady the tests are. `make test` N times, every third time beside two busy
# processes, then once in each odd surrounding. Which tests failed in which is printed as it comes;
# the logs are in _build/steady. Hours: leave the machine alone meanwhile.

logs=$PWD/_build/steady
place=$(mktemp -d)
clone="$place/a clone é"
busy=
trap '[ -z "$busy" ] || kill $busy; rm -rf "$place"' EXIT
rm -rf "$logs"
mkdir -p "$logs"
green=0 all=0

try() { # NAME COMMAND...
	name=$1 log="$logs/$1"
	shift
	all=$((all + 1))
	if "$@" >"$log" 2>&1 </dev/null; then
		green=$((green + 1))
		echo "$name: passed"
	else
		echo "$name: failed; the end of $log:"
		grep -E '^(FAILED|ERROR) ' "$log" || tail -n 5 "$log"
	fi
}

for run in $(seq "${1:-15}"); do
	if [ $((run % 3)) -eq 0 ]; then
		for one in 1 2; do
			sh -c 'while :; do :; done' &
			busy="$busy $!"
		done
		try "$run, beside two busy processes" make test
		kill $busy
		busy=
	else
		try "$run" make test
	fi
done

try "pages three times slower" env AFM_SLOWER=3 make test
try "nohup" nohup make test
try "no terminal" setsid --wait make test
try "umask 077" sh -c 'umask 077 && make test'
try "LANG=C" env LANG=C LC_ALL=C make test
try "another time zone" env TZ=Asia/Kathmandu make test
try "no home" env HOME=/dev/null make test
git clone -q . "$clone"
mkdir "$place/home"
chmod 755 "$place"
try "a path with a space and an accent" make -C "$clone" test
if [ "$(id -u)" -eq 0 ]; then
	chown -R nobody "$place"
	try "another user than root" runuser -u nobody -- env HOME="$place/home" make -C "$clone" test
fi
echo "$green of $all passed"
[ "$green" -eq "$all" ]
