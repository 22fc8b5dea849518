"""The words of FIX 4.4 that are spoken here."""

from datetime import UTC, datetime

ACCOUNT, AVG_PX, CL_ORD_ID, CUM_QTY, EXEC_ID, HANDL_INST, LAST_PX, LAST_QTY = 1, 6, 11, 14, 17, 21, 31, 32
MSG_SEQ_NUM, MSG_TYPE, NEW_SEQ_NO, ORDER_ID, ORDER_QTY, ORD_STATUS, ORD_TYPE = 34, 35, 36, 37, 38, 39, 40
ORIG_CL_ORD_ID, POSS_DUP, PRICE, REF_SEQ_NUM, SENDER, SENDING_TIME, SIDE, SYMBOL = 41, 43, 44, 45, 49, 52, 54, 55
TARGET, TEXT, TIME_IN_FORCE, TRANSACT_TIME, POSS_RESEND, ENCRYPT_METHOD, STOP_PX = 56, 58, 59, 60, 97, 98, 99
EX_DESTINATION, CXL_REJ_REASON, ORD_REJ_REASON, HEART_BT_INT, TEST_REQ_ID = 100, 102, 103, 108, 112
BEGIN_SEQ_NO, END_SEQ_NO, ORIG_SENDING_TIME, GAP_FILL, RESET_SEQ_NUM = 7, 16, 122, 123, 141
EXEC_TYPE, CXL_REJ_RESPONSE_TO, USERNAME, PASSWORD = 150, 434, 553, 554
MASS_STATUS_REQ_ID, MASS_STATUS_REQ_TYPE, ORD_STATUS_REQ_ID = 584, 585, 790
REF_MSG_TYPE, BUSINESS_REJECT_REF_ID = 372, 379

HEARTBEAT, TEST_REQUEST, RESEND_REQUEST, REJECT, SEQUENCE_RESET, LOGOUT, LOGON = "0", "1", "2", "3", "4", "5", "A"
ADMIN = frozenset({HEARTBEAT, TEST_REQUEST, RESEND_REQUEST, REJECT, SEQUENCE_RESET, LOGOUT, LOGON})
NEW_ORDER, CANCEL, REPLACE, STATUS_REQUEST, MASS_STATUS_REQUEST = "D", "F", "G", "H", "AF"
COMMANDS, QUERIES = frozenset({NEW_ORDER, CANCEL, REPLACE}), frozenset({STATUS_REQUEST, MASS_STATUS_REQUEST})
EXECUTION_REPORT, CANCEL_REJECT, BUSINESS_REJECT = "8", "9", "j"

SIDES = {"buy": "1", "sell": "2"}
KINDS = {"market": "1", "limit": "2", "stop": "3", "stop_limit": "4"}
TIMES_IN_FORCE = {"day": "0", "gtc": "1", "ioc": "3", "fok": "4"}


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]


def read_moment(text: str | None, otherwise: datetime) -> datetime:
    """With or without fractions of a second; of nanoseconds what a datetime can keep."""
    try:
        whole, _, fraction = (text or "").partition(".")
        moment = datetime.strptime(whole, "%Y%m%d-%H:%M:%S").replace(tzinfo=UTC)
        return moment.replace(microsecond=int(fraction[:6].ljust(6, "0"))) if fraction else moment
    except ValueError:
        return otherwise
