#!/usr/bin/env python3
"""Verifies an evidence archive of Mainspring, without Mainspring.

    python3 verify_evidence.py FILE [PUBLIC_KEY]

Needs Python 3.8 and nothing else. Signatures are checked with `cryptography` if it is installed, and otherwise with the Ed25519 code
below, which follows RFC 8032. PUBLIC_KEY is a PEM file; without it, the key of the archive is used, and the whole archive could be forged.

Checks the signed list of files, all digests, the hash chain of each journal, the digests of its values, its signed checkpoint, the
signatures of receipts, the approvals of proposals, and the hash chains of audit logs. It does not decide inputs again:
`mainspring evidence verify` does, and also checks that envelopes of receipts name the right steps.
"""

import base64
import hashlib
import json
import sys
import tarfile

PAYLOAD_TYPE = "application/vnd.in-toto+json"
DER_HEADER = bytes.fromhex("302a300506032b6570032100")


class Defect(Exception):
    """A difference between the archive and what was signed."""


# Ed25519 (RFC 8032, section 6).
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def recover_x(y, sign):
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if x2 == 0:
        return None if sign else 0
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * ROOT % P
    if (x * x - x2) % P:
        return None
    return P - x if x & 1 != sign else x


def add(a, b):
    u, v = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    w, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = v - u, z - w, z + w, v + u
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(factor, point):
    total = (0, 1, 1, 0)
    while factor > 0:
        if factor & 1:
            total = add(total, point)
        point, factor = add(point, point), factor >> 1
    return total


def decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x = recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def ed25519(key, message, signature):
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return ed25519_alone(key, message, signature)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except InvalidSignature:
        return False


def ed25519_alone(key, message, signature):
    if len(key) != 32 or len(signature) != 64:
        return False
    a, r, s = decompress(key), decompress(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    y = 4 * pow(5, P - 2, P) % P
    x = recover_x(y, 0)
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    left, right = multiply(s, (x, y, 1, x * y % P)), add(r, multiply(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


def read_key(pem):
    lines = [line for line in pem.decode().split("\n") if line and not line.startswith("-----")]
    der = base64.b64decode("".join(lines), validate=True)
    if not der.startswith(DER_HEADER) or len(der) != len(DER_HEADER) + 32:
        raise Defect("the public key is no Ed25519 key")
    return der[len(DER_HEADER):]


def object_of(pairs):
    """Makes an object. Readers of JSON disagree about a key that stands there twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Defect("an object of JSON has a key twice")
    return found


def read_json(data):
    return json.loads(data, object_pairs_hook=object_of)


def statement(name, data, key):
    """Opens a DSSE envelope, and returns its in-toto statement."""
    envelope = read_json(data)
    payload = base64.b64decode(envelope["payload"], validate=True)
    if envelope["payloadType"] != PAYLOAD_TYPE or len(envelope["signatures"]) != 1:
        raise Defect(f"{name}: it is no envelope with one signature")
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
    signature = base64.b64decode(envelope["signatures"][0]["sig"], validate=True)
    if not ed25519(key, signed, signature):
        raise Defect(f"{name}: the signature is not that of the public key")
    return read_json(payload)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def cbor_head(data, at):
    """Reads the head of a CBOR item (RFC 8949): its major type, its number, and the place after it."""
    kind, short = data[at] >> 5, data[at] & 31
    if short < 24:
        return kind, short, at + 1
    size = 1 << (short - 24)
    return kind, int.from_bytes(data[at + 1:at + 1 + size], "big"), at + 1 + size


def cbor_item(data, at):
    """Reads a CBOR item as a list, number, text, bytes or None, with the place after it. Other simple values are numbers."""
    kind, number, at = cbor_head(data, at)
    if kind == 0:
        return number, at
    if kind in (2, 3):
        value = data[at:at + number]
        if len(value) != number:
            raise Defect("a CBOR item is cut off")
        return (value if kind == 2 else value.decode()), at + number
    if kind in (4, 5):
        items = []
        for _ in range(number if kind == 4 else 2 * number):
            item, at = cbor_item(data, at)
            items.append(item)
        return items, at
    return (None if kind == 7 and number == 22 else number), at


def cbor_whole(data):
    item, end = cbor_item(data, 0)
    if end != len(data):
        raise Defect("there are bytes after a CBOR item")
    return item


def cbor(kind, number):
    """Writes the head of a CBOR item in its shortest form."""
    if number < 24:
        return bytes([kind << 5 | number])
    for short, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([kind << 5 | short]) + number.to_bytes(size, "big")
    raise Defect("a number is too large")


def lines_of(data):
    """Returns the lines of a file. `splitlines` would also split at characters that a text may contain, such as U+2028."""
    return [line for line in data.decode().split("\n") if line]


def cbor_text(text):
    data = text.encode()
    return cbor(3, len(data)) + data


def cbor_bytes(data):
    return cbor(2, len(data)) + data


def journal(name, data):
    """Checks the chain of a journal. Returns the number and the hash of its last frame, and its first frame."""
    before, frames = bytes(32), []
    for number, line in enumerate(lines_of(data)):
        entry = read_json(line)
        frame = base64.b64decode(entry["frame"], validate=True)
        kind, parts, at = cbor_head(frame, 0)
        _, _, at = cbor_head(frame, at)
        _, sequence, at = cbor_head(frame, at)
        _, size, at = cbor_head(frame, at)
        if (kind, parts, size) != (4, 7, 32) or sequence != number or entry["sequence"] != number:
            raise Defect(f"{name}: line {number + 1} is not frame {number}")
        if frame[at:at + 32] != before:
            raise Defect(f"{name}: frame {number} does not continue the frame before it")
        for value in entry["values"]:
            if value["body"] is None:
                continue
            salted = base64.b64decode(value["salt"], validate=True) + base64.b64decode(value["body"], validate=True)
            if hashlib.sha256(salted).digest() not in frame:
                raise Defect(f"{name}: frame {number} does not contain the digest of one of its values")
        before = hashlib.sha256(frame).digest()
        if before.hex() != entry["hash"]:
            raise Defect(f"{name}: frame {number} has another hash")
        frames.append(frame)
    if not frames:
        raise Defect(f"{name}: it is empty")
    return len(frames) - 1, before.hex(), frames


def executors(files, key):
    """Returns the executor keys that the installation has certified, by id: public key, name and release."""
    name, found = "executor-keys.ndjson", {}
    for line in lines_of(files.get(name, b"")):
        public, node, release, since, signature = cbor_whole(base64.b64decode(read_json(line)["certificate"], validate=True))
        parts = [cbor_text("mainspring executor key 1"), cbor_bytes(public), cbor_text(node), cbor_text(release), cbor(0, since)]
        if not ed25519(key, cbor(4, 5) + b"".join(parts), signature):
            raise Defect(f"{name}: a key is not certified by the installation")
        found[hashlib.sha256(public).digest()] = (public, node, release)
    return found


RECEIPT = 1  # The number of the input that brings a receipt.
# The number of the record `Migrated`: `[number, definition, plan, …]`.
MIGRATED = 54
SIGNED_SINCE = 10  # Executions of this decide version and later have signed receipts only.


def frame_input(frame):
    """Returns the input of a frame, its fifth part: the item and its bytes."""
    _, _, at = cbor_head(frame, 0)
    for _ in range(4):
        _, at = cbor_item(frame, at)
    item, end = cbor_item(frame, at)
    return item, frame[at:end]


def check_signature(place, folder, plans, entry, known, roots, frame, payload):
    """Checks the envelope of a receipt, and that a certified executor has signed it."""
    envelope = base64.b64decode(entry["envelope"], validate=True)
    version, key, _, sides, path, signature = cbor_whole(base64.b64decode(entry["proof"], validate=True))
    if key not in known:
        raise Defect(f"{place}: the executor {key.hex()} is not known")
    public, node, release = known[key]
    root = hashlib.sha256(b"\0" + envelope).digest()
    for number in range(len(path) // 32):
        beside = path[32 * number:32 * number + 32]
        pair = beside + root if sides >> number & 1 else root + beside
        root = hashlib.sha256(b"\1" + pair).digest()
    if version != 1 or (public, root, signature) not in roots and not ed25519(public, b"mainspring receipts 1" + root, signature):
        raise Defect(f"{place}: the signature is not that of the executor")
    roots.add((public, root, signature))
    parts, receipt = cbor_whole(envelope), entry["receipt"]
    expected = {
        0: "mainspring receipt 1",
        1: bytes.fromhex(folder.split("/")[1].replace("-", "")),
        4: receipt["step"],
        5: receipt["attempt"],
        7: receipt["effect"],
        8: receipt["status"],
        11: frame,
        12: hashlib.sha256(payload).digest(),
        13: key,
        14: node,
        15: release,
    }
    if len(parts) != 16 or any(parts[number] != part for number, part in expected.items()):
        raise Defect(f"{place}: the receipt is not the one that was signed")
    # A late receipt names the plan of its time, which the journal does not order by time.
    allowed = [plan for since, plan in plans if frame is None or since < frame[0]]
    if parts[3] not in (allowed if frame is None else allowed[-1:]):
        raise Defect(f"{place}: the receipt is not one of the plan of the execution")
    return parts


def plans_of(frames):
    """Returns the hashes of the plans of an execution, each with the frame after which it applies."""
    records = ((number, record) for number, frame in enumerate(frames) for record in cbor_whole(frame)[6])
    first = [(-1, cbor_whole(frames[0])[6][0][3])]
    return first + [(number, record[2]) for number, record in records if record[0] == MIGRATED]


def late_receipts(folder, files, plans, known, roots, decide_version):
    """Checks the outcomes that came too late to count. Returns the number of signed ones, and those that were broken in the store."""
    name, signed, broken = f"{folder}/late-receipts.ndjson", 0, []
    for number, line in enumerate(lines_of(files.get(name, b""))):
        entry, place = read_json(line), f"{name}: line {number + 1}"
        if entry["number"] != number:
            raise Defect(f"{place}: it is not late receipt {number}")
        if entry.get("erased"):
            continue
        if "error" in entry:
            broken.append(f"{folder}: signature broken at a late receipt: {entry['error']}")
        elif entry["proof"] is None:
            if signed or broken or decide_version >= SIGNED_SINCE:
                raise Defect(f"{place}: its signature is missing")
        else:
            body = base64.b64decode(entry["body"], validate=True)
            parts = check_signature(place, folder, plans, entry, known, roots, None, body)
            if parts[10] != entry["atMs"]:
                raise Defect(f"{place}: the receipt is not the one that was signed")
            signed += 1
    return signed, broken


def receipts(folder, files, frames, known):
    """Checks the signatures of an execution's receipts. Returns their number, and those that were broken in the store."""
    name, signed, broken, roots = f"{folder}/signatures.ndjson", set(), {}, set()
    plans = plans_of(frames)
    for line in lines_of(files.get(name, b"")):
        entry = read_json(line)
        sequence = entry["sequence"]
        if "error" in entry:
            broken[sequence] = entry["error"]
            continue
        frame = frames[sequence]
        _, payload = frame_input(frame)
        of_frame = [sequence, hashlib.sha256(frame).digest()]
        check_signature(f"{name}: frame {sequence}", folder, plans, entry, known, roots, of_frame, payload)
        signed.add(sequence)
    first = min([*signed, *broken], default=None)
    records = cbor_whole(frames[0])[6]
    decide_version = records[0][4]
    for sequence, frame in enumerate(frames):
        is_receipt = frame_input(frame)[0][0] == RECEIPT
        is_listed = sequence in signed or sequence in broken
        is_after_first = first is not None and first < sequence
        if is_receipt and not is_listed and (decide_version >= SIGNED_SINCE or is_after_first):
            raise Defect(f"{name}: frame {sequence}: the signature of its receipt is missing")
        if not is_receipt and sequence in signed:
            raise Defect(f"{name}: frame {sequence} has a signature and no receipt")
    places = [f"{folder}: signature broken at frame {sequence}: {why}" for sequence, why in sorted(broken.items())]
    late, late_places = late_receipts(folder, files, plans, known, roots, decide_version)
    return len(signed) + late, places + late_places


def execution(folder, files, key, known):
    last, head, frames = journal(f"{folder}/journal.ndjson", files[f"{folder}/journal.ndjson"])
    first = frames[0]
    name = f"{folder}/checkpoint.dsse.json"
    checkpoint = statement(name, files[name], key)
    subject = checkpoint["subject"][0]
    if subject["name"] != folder.split("/")[1]:
        raise Defect(f"{name}: the checkpoint is that of another execution")
    if subject["digest"]["sha256"] != head or checkpoint["predicate"]["sequence"] != last:
        raise Defect(f"{name}: the journal does not end in the frame of the checkpoint")
    if hashlib.sha256(files[f"{folder}/plan.cbor"]).digest() not in first:
        raise Defect(f"{folder}/plan.cbor: it is not the plan that the journal names")
    for line in lines_of(files.get(f"{folder}/proposals.ndjson", b"")):
        proposal = read_json(line)
        changed = bytes.fromhex(proposal["change"]["hash"][len("sha256:"):])
        # The first frame names the definition, and that of a migration another one.
        if not any(changed in frame for frame in frames):
            raise Defect(f"{folder}/proposals.ndjson: a proposal is for another definition")
        if not any(review["approve"] and not review["is_void"] for review in proposal["reviews"]):
            raise Defect(f"{folder}/proposals.ndjson: a proposal has no valid approval")
    return receipts(folder, files, frames, known)


def audit_log(name, data):
    """Checks the chain of an audit log. Its form is in docs/reference/audit-log.md."""
    from datetime import datetime, timezone

    lines = lines_of(data)
    head, before, number = read_json(lines[0]), bytes(32), 0
    for line in lines[1:]:
        entry = read_json(line)
        number += 1
        at = datetime.strptime(entry["at"].replace("Z", "+0000"), "%Y-%m-%dT%H:%M:%S.%f%z" if "." in entry["at"] else "%Y-%m-%dT%H:%M:%S%z")
        epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
        ms = round((at - epoch).total_seconds() * 1000)
        parts = [
            cbor_text("mainspring audit 1"),
            cbor_bytes(before),
            cbor(0, number),
            cbor_text(head["organizationId"]),
            cbor(0, ms),
            cbor_text(entry["actor"]),
            cbor_text(entry["action"]),
            cbor_text(entry["target"]),
            cbor_bytes(bytes.fromhex(entry["detailCbor"])),
        ]
        before = hashlib.sha256(cbor(4, len(parts)) + b"".join(parts)).digest()
        if entry["number"] != number or entry["hash"] != "sha256:" + before.hex():
            raise Defect(f"{name}: entry {number} is not what was written")
    sealed = head["head"] or {"number": 0, "hash": "sha256:" + bytes(32).hex()}
    if sealed["number"] != number or (number and sealed["hash"] != "sha256:" + before.hex()):
        raise Defect(f"{name}: it does not end in the entry that its head names")


def verify(path, key_path):
    files = {}
    with open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive.getmembers():
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.name in files:
                raise Defect(f"{member.name}: it is no regular file, or there twice")
            files[member.name] = archive.extractfile(member).read()
        file.seek(archive.offset)
        if file.read().strip(b"\0"):
            raise Defect("the archive has data after its end")
    manifest = files.pop("manifest.dsse.json", None)
    if manifest is None or "public-key.pem" not in files:
        raise Defect("the archive has no signed list or no public key")
    key = read_key(files["public-key.pem"])
    if key_path is not None:
        with open(key_path, "rb") as file:
            if read_key(file.read()) != key:
                raise Defect("public-key.pem: it is not the given key")
    listed = {one["name"]: one["digest"]["sha256"] for one in statement("manifest.dsse.json", manifest, key)["subject"]}
    for name in sorted(set(listed) | set(files)):
        if name not in files or listed.get(name) != sha256(files[name]):
            raise Defect(f"{name}: its content is not the one that was signed")
    folders = sorted({"/".join(name.split("/")[:2]) for name in files if name.startswith("executions/")})
    known = executors(files, key)
    found = [execution(folder, files, key, known) for folder in folders]
    signed, broken = sum(count for count, _ in found), [place for _, places in found for place in places]
    logs = [name for name in sorted(files) if name.startswith("audit/")]
    for name in logs:
        if files[name]:
            audit_log(name, files[name])
    missing = [read_json(line) for line in lines_of(files.get("not-exported.ndjson", b""))]
    broken += [f"execution {one['execution']} is not in the archive: {one['reason']}" for one in missing]
    if broken:
        raise Defect("\n".join(broken))
    print(f"ok: {len(folders)} executions, {signed} signed receipts, {len(logs)} audit logs, signed with sha256:{sha256(key)}")
    if key_path is None:
        print("the key is that of the archive, so the whole archive could be forged")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        verify(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None)
    except Defect as defect:
        print(f"failed: {defect}", file=sys.stderr)
        sys.exit(1)
    except (KeyError, IndexError, TypeError, ValueError, OSError, tarfile.TarError) as error:
        print(f"failed: the archive is damaged: {error!r}", file=sys.stderr)
        sys.exit(1)
